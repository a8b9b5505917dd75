/* Names of methods and files as all runs of one program have them. */
#ifndef JD_TOOL_NORMAL_NAME_H
#define JD_TOOL_NORMAL_NAME_H

/*
 * Leaves out of `name`, in place, what differs from run to run in the names of hidden and generated
 * classes: numbers, addresses, signs by chance. "A$$Lambda$14/0x00007f42f8000a10.run()" becomes
 * "A$$Lambda.run()", "jdk.proxy2.$Proxy7.call()" "jdk.proxy2.$Proxy.call()",
 * "user$eval140.invoke()" "user$eval.invoke()"; and of libraries without symbols, what their
 * temporary files have by chance: "[jna2091806938731694127.tmp (deleted)]" becomes "[jna.tmp]".
 */
void normal_name(char *name);

#endif
