"""``python -m landed``."""

from landed.cli.main import main

raise SystemExit(main())
