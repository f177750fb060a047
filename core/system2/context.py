"""What the agents of one workflow share: the model, the project's tools, who is asked, what is written down."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from aeon_core.llm.base import LLMAdapter
from aeon_core.tools.files.text_files import file_tools
from aeon_core.tools.registry import ToolRegistry
from aeon_core.tools.shell.bash import BashTool
from aeon_core.tools.shell.settings import ShellSettings
from system2.constants import DEFAULT_TRANSCRIPT_DIR
from system2.cost import CostTracker
from system2.human_input import HumanInput
from system2.logs import Log
from system2.model_calls import ModelCalls, ModelOfAgent
from system2.policies import BashPolicy, QuestionPolicy, RefuseBash, SafeChoices
from system2.settings import WorkflowSettings
from system2.suite_runs import RanCommand
from system2.transcript import Transcript


class WorkflowContext:
    """Made once for a workflow, and closed at its end. No file or process is touched before an agent works.

    Raises SandboxError where the project root is no folder. `sleep` waits before another attempt of a call.
    """

    def __init__(
        self,
        project_root: Path,
        settings: WorkflowSettings,
        model: LLMAdapter,
        *,
        models: ModelOfAgent | None = None,
        costs: CostTracker,
        transcript: Transcript,
        log: Log,
        bash: BashPolicy | None = None,
        questions: QuestionPolicy | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self.project_root, self.settings, self.model = project_root, settings, model
        self.model_of: ModelOfAgent = models or (lambda _: model)
        """The model of an agent."""
        self.costs, self.transcript, self.log = costs, transcript, log
        self.outputs = project_root / DEFAULT_TRANSCRIPT_DIR / "outputs"
        """Where tool results are kept whole that are too long for a conversation; agents may read it."""
        self.abort = threading.Event()
        self.test_runs: list[RanCommand] = []
        """The tests that agents ran, in order."""
        self.human_input = HumanInput(questions or SafeChoices(), bash or RefuseBash(), transcript)
        self.calls = ModelCalls(self.model_of, costs, transcript, log, self.human_input, abort=self.abort, sleep=sleep)
        self.shell = ShellSettings(
            safety_mode=settings.safety_mode,
            blocklist=settings.bash_blocklist,
            network=settings.bash_network,
            output_dir=self.outputs,
        )
        self._bash = BashTool(project_root, self.shell)
        self.registry = _registry(project_root, settings, self._bash)

    def stop(self) -> None:
        """End what is going on soon, with RunAborted on the thread that works; from any thread."""
        self.abort.set()
        self._bash.close()

    def close(self) -> None:
        """Release what the tools and the model hold."""
        self._bash.close()
        self.registry.close()
        self.model.close()


def _registry(project_root: Path, settings: WorkflowSettings, bash: BashTool) -> ToolRegistry:
    """Return the six tools of the project (REQ-020). What the workflow itself writes down is not searched."""
    hidden = own_files(settings)
    registry = ToolRegistry()
    for tool in [*file_tools(project_root, hidden), bash]:
        registry.register(tool)
    return registry


def own_files(settings: WorkflowSettings) -> Callable[[str], bool]:
    """Return the test of a project's paths that are the workflow's own records: transcripts, and long outputs."""
    folders = [Path(place).as_posix().strip("/") for place in (settings.transcript_dir, DEFAULT_TRANSCRIPT_DIR)]
    return lambda path: any(path == folder or path.startswith(f"{folder}/") for folder in folders)
