"""Tasks and programs as Python: the generated script, and bare prompts, written and read."""

from opsmith.targets.step.codegen import generate_script
from opsmith.targets.step.codegen.bare import bare_prompt, bare_task
from opsmith.targets.step.codegen.bare_read import read_bare
from opsmith.targets.step.codegen.parts import body_text


class StepTexts:
    """All that few commands write."""

    generate_script = staticmethod(generate_script)
    bare_prompt = staticmethod(bare_prompt)
    bare_task = staticmethod(bare_task)
    read_bare = staticmethod(read_bare)
    body_text = staticmethod(body_text)
