# What a signal handler interrupted (tests/in_signal.c) in DeepChain, of collapsed stacks: how many there are, in how many of
# these the chain has all its methods down to the interrupted one, and in how many that is the last one, which works.
/burn_in_handler/ && /DeepChain\.m00/ {
    all += $NF
    depth = 0
    while (match($0, /DeepChain\.m[0-9][0-9]/)) {
        if (substr($0, RSTART + 11, 2) + 0 != depth++) next
        $0 = substr($0, RSTART + RLENGTH)
    }
    whole += $NF
    if (depth == 36) last += $NF
}
END { print all + 0, whole + 0, last + 0 }
