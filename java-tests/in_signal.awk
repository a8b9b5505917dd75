# What a signal handler interrupted (tests/in_signal.c) in DeepChain, of collapsed stacks: how many there are, in how many of
# these the chain has all its methods down to the interrupted one, and of a hundred in how many that is the last one, which
# works; the same of stacks without the handler.
/DeepChain\.m00/ {
    handler = /burn_in_handler/
    all[handler] += $NF
    depth = 0
    while (match($0, /DeepChain\.m[0-9][0-9]/)) {
        if (substr($0, RSTART + 11, 2) + 0 != depth++) next
        $0 = substr($0, RSTART + RLENGTH)
    }
    whole += handler * $NF
    last[handler] += (depth == 36) * $NF
}
END { print all[1] + 0, whole + 0, int(100 * last[1] / (all[1] + !all[1])), int(100 * last[0] / (all[0] + !all[0])) }
