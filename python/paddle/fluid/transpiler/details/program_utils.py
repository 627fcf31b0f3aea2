"""Programs, ops and variables as text."""

__all__ = ["program_to_code", "op_to_code", "variable_to_code"]


def variable_to_code(var):
    return var.to_string()


def op_to_code(op, skip_op_callstack=True):
    return repr(op)


def program_to_code(prog, fout=None, skip_op_callstack=True):
    """Prints a program, or writes it to a file that is open. Its text never has call stacks; an error of an op names the
    line of the script."""
    text = prog.to_string()
    print(text) if fout is None else fout.write(text + "\n")
