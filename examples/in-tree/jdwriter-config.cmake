# Stands for the installed package: the target exists in this build already.
