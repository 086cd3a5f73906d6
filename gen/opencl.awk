# Makes the OpenCL front from the rows of opencl.tbl and the prototypes of the installed headers.
#
#   awk -f opencl.awk -v out=WHAT opencl.tbl .../CL/cl_icd.h .../CL/cl_ext.h
#
# WHAT: header   prototypes of our entry points, numbers of extension functions
#       layer    the dispatch table, generated wrappers, the extension tables
#       forward  the stubs of the forwarding libOpenCL.so.1
#       map      its version map
#       page     docs/guide/opencl-coverage.md
#
# Plain POSIX awk.  Prototypes are read as text: comments that name a parameter become the name.

function die(msg) { print "opencl.awk: " msg > "/dev/stderr"; failed = 1; exit 1 }

# ---- rows -------------------------------------------------------------------------------

FILENAME ~ /\.tbl$/ {
    if ($0 ~ /^[ \t]*(#|$)/)
        next
    name = $1
    if (name in role)
        die(name " has two rows")
    version[name] = $2; role[name] = $3; key[name] = $4
    note[name] = ""
    for (i = 5; i <= NF; i++)
        note[name] = note[name] (i > 5 ? " " : "") $i
    if ($2 == "ext") { exts[++ext_n] = name; roles = "^(pass|hide)$" }
    else if ($2 == "fn") { fns[++fn_n] = name; roles = "^(charge|refund|gate|view|pass|hide)$" }
    else if ($2 ~ /^[0-9]\.[0-9]$/) { rows[++row_n] = name; roles = "^(charge|refund|gate|view|pass)$" }
    else die(name ": unknown version " $2)
    if ($3 !~ roles)
        die(name ": unknown role " $3)
    if ($3 ~ /^(pass|hide)$/ && $4 !~ /^(-|count)$/)
        die(name ": a " $3 " row has no body")
    if ($3 ~ /^(charge|refund|view)$/ && $4 != "body")
        die(name ": a " $3 " row needs a body")
    if ($3 == "gate" && $4 ~ /^(-|count)$/)
        die(name ": a gate row needs the size of its command")
    next
}

# ---- prototypes -------------------------------------------------------------------------

# Collect a typedef of a function pointer up to its semicolon.
/^typedef/ { text = ""; collecting = 1 }
collecting {
    text = text " " $0
    if ($0 ~ /;/) {
        collecting = 0
        take_prototype(text)
    }
}
/^typedef struct _cl_icd_dispatch/ { in_table = 1; collecting = 0 }
in_table && /^ *(cl_api_cl[A-Za-z0-9]+)? *cl[A-Za-z0-9]+;/ {
    slot = $NF
    sub(/;.*/, "", slot)
    slots[++slot_n] = slot
}
/^} cl_icd_dispatch/ { in_table = 0 }

function take_prototype(s,    head, name, n) {
    if (s !~ /CL_API_CALL *\* *(cl_api_)?cl[A-Za-z0-9]+(_fn)?\)/ || s ~ /\{/)
        return
    gsub(/\/\*/, " ", s); gsub(/\*\//, " ", s)
    gsub(/\[\]/, "", s); gsub(/[ \t\r]+/, " ", s)
    match(s, /\( *CL_API_CALL *\* */)
    head = substr(s, 1, RSTART - 1)
    sub(/^ *typedef */, "", head); sub(/ *$/, "", head)
    s = substr(s, RSTART + RLENGTH)
    name = s
    sub(/\).*/, "", name)
    sub(/^cl_api_/, "", name); sub(/_fn$/, "", name)
    sub(/^[^)]*\) *\(/, "", s)
    if (name in result)
        return
    result[name] = head
    take_params(name, s)
}

# Split at commas outside parentheses, up to the closing one.
function take_params(name, s,    depth, i, c, cur) {
    depth = 0; cur = ""; param_n[name] = 0
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        if (c == ")" && depth == 0)
            break
        if (c == "(") depth++
        if (c == ")") depth--
        if (c == "," && depth == 0) { take_param(name, cur); cur = ""; continue }
        cur = cur c
    }
    take_param(name, cur)
}

function take_param(name, s,    n, p) {
    gsub(/^ +| +$/, "", s)
    if (s == "void" || s == "")
        return
    n = ++param_n[name]
    if (s ~ /CL_CALLBACK/) {
        p = s
        sub(/.*CL_CALLBACK *\* */, "", p); sub(/ *\).*/, "", p)
    } else {
        sub(/\[[0-9]+\]$/, "", s)
        if (s == "const size_t origin" || s == "const size_t region")
            sub(/size_t /, "size_t *", s)
        p = s
        sub(/.*[ *]/, "", p)
    }
    if (p !~ /^[a-z_][a-z0-9_]*$/ || p ~ /^(int|cl_[a-z]+)$/)
        die(name ": parameter without a name: " s)
    param_decl[name, n] = s
    param_name[name, n] = p
}

function params(name,    i, s) {
    for (i = 1; i <= param_n[name]; i++)
        s = s (i > 1 ? ", " : "") param_decl[name, i]
    return s == "" ? "void" : s
}

function args(name, submit,    i, s, p) {
    for (i = 1; i <= param_n[name]; i++) {
        p = param_name[name, i]
        if (submit && p == "num_events_in_wait_list") p = "s.wait_count"
        if (submit && p == "event_wait_list") p = "s.wait_list"
        if (submit && p == "event") p = "s.event"
        if (submit && p == "errcode_ret") p = "&code"
        s = s (i > 1 ? ", " : "") p
    }
    return s
}

function has_param(name, want,    i) {
    for (i = 1; i <= param_n[name]; i++)
        if (param_name[name, i] ~ want)
            return param_name[name, i]
    return ""
}

# ---- what comes out ---------------------------------------------------------------------

function wrapped(name) { return role[name] !~ /^(pass|hide)$/ || key[name] == "count" }
function generated(name) { return wrapped(name) && key[name] != "body" }
function fn_type(name) { return version[name] == "fn" ? name "_fn" : "cl_api_" name }
function next_of(name) { return version[name] == "fn" ? "ocl_ext." name : "ocl_next." name }

# The C expression for the cost of a gated command.
function cost_of(name,    call)
{
    call = "submit_copy(OCL_" name ", " key[name] ")"
    if (key[name] ~ /^(kernel|object)\(/)
        call = "submit_" key[name]
    sub(/\(/, "(\\&s, ", call)
    return call
}

function banner(lead, tail) {
    print lead "Generated by gen/opencl.awk from gen/opencl.tbl and the OpenCL headers." tail
}

function emit_header(    i) {
    banner("/* ", " */")
    print "#ifndef OPENCL_GEN_H\n#define OPENCL_GEN_H\n"
    print "#define OCL_ROWS " row_n "\n"
    print "/* One number for each entry point: names a kind of command in cost keys. */"
    print "enum ocl_fn {"
    for (i = 1; i <= row_n; i++) print "    OCL_" rows[i] ","
    for (i = 1; i <= fn_n; i++) print "    OCL_" fns[i] ","
    print "    OCL_FN_COUNT\n};\n"
    print "/* The driver's own extension functions, as found; NULL until asked for. */"
    print "struct ocl_ext {"
    for (i = 1; i <= fn_n; i++)
        if (wrapped(fns[i])) print "    " fn_type(fns[i]) " " fns[i] ";"
    print "};\n\nextern struct ocl_ext ocl_ext;\n"
    for (i = 1; i <= row_n; i++)
        if (wrapped(rows[i])) print "__typeof__(*(" fn_type(rows[i]) ")0) ocl_" rows[i] ";"
    for (i = 1; i <= fn_n; i++)
        if (wrapped(fns[i])) print "__typeof__(*(" fn_type(fns[i]) ")0) ocl_" fns[i] ";"
    print "\n#endif"
}

function emit_wrapper(name,    call, blocking, rc) {
    call = next_of(name) "(" args(name, role[name] == "gate") ")"
    print "\n" result[name] " ocl_" name "(" params(name) ")\n{"
    if (role[name] == "pass") {
        print "    if (!ocl_may_pass())\n        return CL_OUT_OF_RESOURCES;"
        print "    return " next_of(name) "(" args(name, 0) ");\n}"
        return
    }
    blocking = has_param(name, "^blocking")
    if (blocking == "") blocking = "CL_FALSE"
    print "    struct submit s;"
    print "    cl_int code = CL_SUCCESS;"
    print "    submit_to(&s, command_queue);"
    print "    if (!submit_begin(&s, " cost_of(name) ","
    print "                      " blocking ", num_events_in_wait_list, event_wait_list, event))"
    if (result[name] == "cl_int")
        print "        return CL_OUT_OF_RESOURCES;"
    else {
        print "    {\n        if (errcode_ret)\n            *errcode_ret = CL_OUT_OF_RESOURCES;"
        print "        return NULL;\n    }"
    }
    if (result[name] == "cl_int") {
        print "    code = " call ";"
        print "    return submit_end(&s, code);\n}"
    } else {
        print "    " result[name] " out = " call ";"
        print "    code = submit_end(&s, code);"
        print "    if (errcode_ret)\n        *errcode_ret = code;"
        print "    return out;\n}"
    }
}

function emit_layer(    i, n) {
    banner("/* ", " */")
    print "#include \"opencl/layer.h\"\n"
    print "struct ocl_ext ocl_ext;"
    for (i = 1; i <= row_n; i++) if (generated(rows[i])) emit_wrapper(rows[i])
    for (i = 1; i <= fn_n; i++) if (generated(fns[i])) emit_wrapper(fns[i])
    print "\nvoid ocl_fill_table(cl_icd_dispatch *table)\n{"
    for (i = 1; i <= row_n; i++)
        if (wrapped(rows[i]))
            print "    if (!ocl_test_pass(\"" rows[i] "\"))\n        table->" rows[i] " = ocl_" rows[i] ";"
    print "}\n"
    print "const struct ocl_core_row ocl_core_rows[] = {"
    for (i = 1; i <= row_n; i++)
        print "    { \"" rows[i] "\", \"" role[rows[i]] "\", " \
              (wrapped(rows[i]) ? "(void (*)(void))ocl_" rows[i] : "NULL") " },"
    print "    { NULL, NULL, NULL }\n};\n"
    print "const struct ocl_fn_row ocl_fn_rows[] = {"
    for (i = 1; i <= fn_n; i++) {
        n = fns[i]
        if (wrapped(n))
            print "    { \"" n "\", OCL_FN_WRAP, (void (*)(void))ocl_" n ", (void (**)(void))&ocl_ext." n " },"
        else
            print "    { \"" n "\", " (role[n] == "hide" ? "OCL_FN_HIDE" : "OCL_FN_PASS") ", NULL, NULL },"
    }
    print "    { NULL, OCL_FN_HIDE, NULL, NULL }\n};\n"
    print "const char *const ocl_shown_extensions[] = {"
    for (i = 1; i <= ext_n; i++) if (role[exts[i]] == "pass") print "    \"" exts[i] "\","
    print "    NULL\n};"
}

function emit_forward(    i, n, fail) {
    banner("/* ", " */")
    print "#include \"opencl/forward.h\"\n"
    print "struct fwd_table {"
    for (i = 1; i <= row_n; i++) print "    cl_api_" rows[i] " " rows[i] ";"
    print "};\n\nstatic struct fwd_table fwd;\n"
    print "const struct fwd_row fwd_rows[] = {"
    for (i = 1; i <= row_n; i++)
        print "    { \"" rows[i] "\", (void **)&fwd." rows[i] " },"
    print "    { NULL, NULL }\n};"
    for (i = 1; i <= row_n; i++) {
        n = rows[i]
        print "\nFWD_EXPORT " result[n] " CL_API_CALL " n "(" params(n) ");"
        print "FWD_EXPORT " result[n] " CL_API_CALL " n "(" params(n) ")\n{"
        print "    if (!fwd_ready() || !fwd." n ") {"
        if (n == "clGetPlatformIDs")
            print "        if (num_platforms)\n            *num_platforms = 0;"
        if (has_param(n, "^errcode_ret$") != "")
            print "        if (errcode_ret)\n            *errcode_ret = CL_INVALID_PLATFORM;"
        if (result[n] == "void") print "        return;"
        else if (result[n] != "cl_int") print "        return NULL;"
        else if (n == "clGetPlatformIDs") print "        return CL_PLATFORM_NOT_FOUND_KHR;"
        else print "        return CL_INVALID_PLATFORM;"
        print "    }"
        print "    " (result[n] == "void" ? "" : "return ") "fwd." n "(" args(n, 0) ");\n}"
    }
}

function emit_map(    v, i, prev, first, list, count) {
    count = split("1.0 1.1 1.2 2.0 2.1 2.2 3.0", list, " ")
    for (v = 1; v <= count; v++) {
        print "OPENCL_" list[v] " {"
        first = 1
        for (i = 1; i <= row_n; i++)
            if (version[rows[i]] == list[v]) {
                if (first) print "    global:"
                first = 0
                print "        " rows[i] ";"
            }
        if (v == 1) print "    local:\n        *;"
        print "} " prev ";"
        prev = "OPENCL_" list[v]
    }
}

function page_rows(list, n, third,    i) {
    for (i = 1; i <= n; i++)
        print "| `" list[i] "` | " role[list[i]] (key[list[i]] == "count" ? ", counted" : "") " | " \
              (third && role[list[i]] == "gate" && key[list[i]] != "body" ? "size: `" key[list[i]] "` " : "") \
              note[list[i]] " |"
}

function emit_page() {
    print "<!-- Generated by gen/opencl.awk from gen/opencl.tbl (out=page); a test keeps this copy equal. -->"
    print "# What the OpenCL front covers\n"
    print "All " row_n " entry points of the loader's dispatch table, the extension functions that have no slot,"
    print "and the extensions that a program inside a slice is shown. `charge` asks for memory before the"
    print "driver does, `refund` gives it back, `gate` waits for a turn of the device, `view` shows the slice,"
    print "`pass` is the driver's own function, `hide` is not there for the program.\n"
    print "## Entry points\n\n| name | role | note |\n|---|---|---|"
    page_rows(rows, row_n, 1)
    print "\n## Extension functions\n\nA name that is not here has the address NULL.\n"
    print "| name | role | note |\n|---|---|---|"
    page_rows(fns, fn_n, 1)
    print "\n## Extensions\n\nA name that is not here is taken out of the extension strings.\n"
    print "| name | role | note |\n|---|---|---|"
    page_rows(exts, ext_n, 0)
}

END {
    if (failed)
        exit 1
    for (i = 1; i <= slot_n; i++) {
        if (slots[i] ~ /D3D1[01]|DX9/)      # Windows only
            continue
        have[slots[i]] = 1
        if (!(slots[i] in role)) die("dispatch slot without a row: " slots[i])
    }
    for (i = 1; i <= row_n; i++)
        if (!(rows[i] in have) || !(rows[i] in result)) die("row without a slot: " rows[i])
    for (i = 1; i <= fn_n; i++)
        if (wrapped(fns[i]) && !(fns[i] in result)) die("no prototype for " fns[i])
    if (out == "header") emit_header()
    else if (out == "layer") emit_layer()
    else if (out == "forward") emit_forward()
    else if (out == "map") emit_map()
    else if (out == "page") emit_page()
    else die("out=" out "?")
}
