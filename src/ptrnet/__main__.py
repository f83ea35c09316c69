"""`python -m ptrnet`."""

from ptrnet.cli import main

main()
