"""python -m allot.cli"""

import sys

from .main import main

sys.exit(main())
