#!/bin/sh
# The manual page has no errors and no warnings.  Argument: the page.
command -v mandoc >/dev/null || { echo "SKIP: the manual page: mandoc is not installed"; exit 77; }
exec mandoc -Tlint -Wwarning "$1"
