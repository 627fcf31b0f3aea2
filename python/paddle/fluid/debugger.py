"""Programs as text and as drawings."""
from paddle.fluid.transpiler.details import program_to_code

__all__ = ["pprint_program_codes", "pprint_block_codes", "draw_block_graphviz"]


def pprint_program_codes(program):
    program_to_code(program)


def pprint_block_codes(block):
    print(block)


def draw_block_graphviz(block, highlights=None, path="./temp.dot"):
    """Writes a drawing of ops and variables for Graphviz: `dot -Tpdf temp.dot`. Variables whose names are among `highlights`
    are filled."""
    filled = {v if isinstance(v, str) else v.name for v in highlights or ()}
    lines, shown = ["digraph program {"], set()

    def variable(name):
        if name not in shown:
            shown.add(name)
            style = ", style=filled" if name in filled else ""
            lines.append(f'  "{name}" [shape=ellipse{style}];')
        return f'"{name}"'

    for number, op in enumerate(block.ops):
        lines.append(f'  op_{number} [shape=box, label="{op.type}"];')
        lines.extend(f"  {variable(name)} -> op_{number};" for name in op.input_arg_names)
        lines.extend(f"  op_{number} -> {variable(name)};" for name in op.output_arg_names)
    with open(path, "w") as file:
        file.write("\n".join(lines + ["}", ""]))
