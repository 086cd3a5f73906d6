# The bash completion: what it offers after what was typed.  Argument: the script.
# shellcheck source=/dev/null
source "$1" || exit 1
failed=0

# offers LINE... gives WANT...: the last word of LINE is the one being typed
offers() {
    local line=() want=
    while [ "$1" != gives ]; do line+=("$1"); shift; done
    shift
    want=$*
    COMP_WORDS=("${line[@]}") COMP_CWORD=$((${#line[@]} - 1))
    _sluice
    [ "${COMPREPLY[*]}" = "$want" ] && return
    echo "sluice ${line[*]}: offers '${COMPREPLY[*]}', not '$want'"
    failed=1
}

offers sluice r gives run resize release
offers sluice run --me gives --mem --mem-limit
offers sluice run --mode b gives burst besteffort
offers sluice run --mode = b gives burst besteffort
offers sluice run --mode = gives hard burst besteffort
offers sluice ps -o '' gives table json
offers sluice -o '' gives table json
offers sluice help de gives devices
offers sluice --run-dir /tmp dev gives devices
offers sluice completion '' gives bash
exit $failed
