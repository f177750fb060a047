"""The question that a run asks, on its screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace
from textual.app import SuspendNotSupported
from textual.widget import Widget
from typing_extensions import override

from aeon_core.errors import AeonError
from aeon_core.journal.values import dict_of, str_of, strs_of
from aeon_core.journal.view.model import RunView, cut_replies
from aeon_tui.screens.dialogs import ConfirmDialog
from aeon_tui.screens.pane_screen import TOO_LATE, PanelController
from aeon_tui.sessions.approval_broker import ApprovalBroker
from aeon_widgets.approval_panel import ApprovalPanel
from aeon_widgets.keys import key_of
from aeon_widgets.run_question import (
    ALWAYS,
    ANSWERS,
    REVIEWED,
    QuestionSection,
    given_answers,
    question_sections,
    run_question,
)
from aeon_widgets.text import one_line

if TYPE_CHECKING:
    from aeon_core.approvals import ApprovalDecision, ApprovalRequest
    from aeon_core.journal.records import Decision
    from aeon_tui.sessions.approval_edits import ApprovalEdits


UNUSED = "The run ends here, so your answers are not used; its journal keeps them."
KEPT = "Your answers are kept for when you resume the run."


class ApprovalController(PanelController):
    """Mounts the panel for the question that waits at the broker, and removes it once it is decided."""

    _edits: ApprovalEdits | None = None
    _tools: Sequence[dict[str, Any]] = ()
    _root = Path()
    """The project of the run."""
    _answers: Mapping[str, str] = MappingProxyType({})
    """Answers to the open questions, sent with the decision."""

    def show(self, view: RunView, *, home: Widget) -> bool:
        """Show the current question, if there is one; return whether it is new.

        `home` gets the focus if no other widget is known. `view` is the run as it is now: a pass is compared with those
        before it.
        """
        request = self.waiting()
        if request is not None and request.point in REVIEWED and view.asked != request.point:
            return False  # its subject is still being read
        if request is self._asked:
            return False  # compare the request itself: the next one may ask the same, with the same digest
        self._asked, self._tools = request, view.tools
        self._root = Path(str_of(view.config.get("project_root")) or Path.cwd())
        question = None
        if request is not None:
            assessments, cut = list(view.assessments), cut_replies(view)
            question = run_question(request.point, request.subject, request.pass_number, assessments, cut)
            known = {**given_answers(request.subject), **self._answers}
            self._answers = {each: known[each] for each in _questions(request) if each in known}
            question = replace(question, sections=self._with_answers(question.sections))
        self.show_question(question, home=home)
        return request is not None

    def answered(self, event: ApprovalPanel.Answered) -> None:
        """Act on the user's choice: open an editor, confirm an abort, or answer the question."""
        if event.answer == "edit":
            self.edit(event.panel)
        elif event.answer == "abort":
            self.abort(event.panel)
        elif event.answer == ALWAYS:
            self.allow_always(event.panel)
        elif event.answer == ANSWERS:
            self.answer_questions(event.panel)
        else:
            from aeon_core.approvals import ApprovalDecision

            answer = cast("Decision", event.answer)
            self.decide(event.panel, ApprovalDecision(decision=answer, feedback=event.words))

    @override
    def decide(self, panel: ApprovalPanel, decision: ApprovalDecision) -> bool:
        """Answer as for any screen, with the answers to the run's questions; notify the user if an edit is too late."""
        asked = self._asked
        if asked is not None and asked.point in REVIEWED and (self._answers or given_answers(asked.subject)):
            decision = decision.model_copy(update={"answers": dict(self._answers)})
            ended = asked.point == "pass" and asked.subject.get("ended") is not None
            # The run ends with this decision.
            if self._answers and decision.decision in ("accept", "abort", *(["approve"] if ended else [])):
                self._screen.notify(KEPT if decision.decision == "abort" else UNUSED, markup=False)
        decided = super().decide(panel, decision)
        if not decided and decision.decision == "edit":
            self._screen.notify(TOO_LATE, severity="warning", markup=False)
        return decided

    def abort(self, panel: ApprovalPanel) -> None:
        """Abort the run if the user confirms; otherwise the question keeps waiting."""

        from aeon_core.approvals import ApprovalDecision

        def answered(yes: bool | None) -> None:
            if yes:
                panel.answered = True
                self.decide(panel, ApprovalDecision(decision="abort"))

        # The dialog receives the keys now; the first key after it may be meant for the question.
        panel.reopen()
        resumes = key_of(self._screen, "run.resume")
        lines = [f"The work so far is kept; {resumes} resumes the run later, with this question."]
        self._screen.app.push_screen(ConfirmDialog("End the run here?", lines, "End it"), answered)

    def allow_always(self, panel: ApprovalPanel) -> None:
        """Ask for the rule that allows calls like this one, and approve the call with it."""
        name = self._asked.subject.get("tool_name") if self._asked is not None else None
        schema = next((dict_of(tool.get("input_schema")) for tool in self._tools if tool.get("name") == name), None)
        self.ask_for_rule(panel, list(dict_of((schema or {}).get("properties")) or {}), self._root)

    def answer_questions(self, panel: ApprovalPanel) -> None:
        """Let the user answer the open questions; the answers are shown with the questions until they decide."""
        from aeon_tui.screens.dialogs import AnswersDialog

        panel.reopen()
        if self._asked is None:
            return

        def given(answers: dict[str, str] | None) -> None:
            self._guard.arm()
            if answers is not None and self._panel is not None and self._panel.question is panel.question:
                self._answers = answers
                if isinstance(self._broker, ApprovalBroker):
                    self._broker.answers = dict(answers)
                self._panel.set_sections(self._with_answers(panel.question.sections))

        self._screen.app.push_screen(AnswersDialog(_questions(self._asked), self._answers), given)

    def _with_answers(self, sections: Sequence[QuestionSection]) -> tuple[QuestionSection, ...]:
        """Return the sections of a question, with the answers in the section of the open questions."""
        questions = _questions(self._asked) if self._asked is not None else []
        shown = tuple(question_sections(questions, self._answers))
        return (*shown, *(each for each in sections if each.opens != ANSWERS))

    def edit(self, panel: ApprovalPanel) -> None:
        """Open the subject of the question in an editor, and answer with the edited text.

        The user's own editor is used if one is set and has a terminal (the app is suspended meanwhile), else the
        app's. The run waits.
        """
        from aeon_tui.platform.background_tasks import reason
        from aeon_tui.platform.editor import has_own_editor, terminal_given
        from aeon_tui.sessions.approval_edits import UNCHANGED, ApprovalEdits

        if not has_own_editor():
            self._edit_here(panel)
            return
        edits = self._edits = self._edits or ApprovalEdits(self._tools)
        try:
            with terminal_given(self._screen.app):
                decision = edits.edit(self._asked) if self._asked is not None else None
        except SuspendNotSupported:
            self._edit_here(panel)
        except (AeonError, OSError) as error:
            self._edit_ended(panel, None, reason(error))
        else:
            self._edit_ended(panel, decision, UNCHANGED)

    def _edit_ended(self, panel: ApprovalPanel, decision: ApprovalDecision | None, problem: str) -> None:
        if decision is not None:
            self.decide(panel, decision)
        else:
            panel.show_problem(one_line(problem))
        self._guard.arm()

    def _edit_here(self, panel: ApprovalPanel) -> None:
        """Open the subject of the question in the app's own editor."""
        from aeon_tui.platform.editor import text_problems
        from aeon_tui.screens.editor import Edited, EditorScreen
        from aeon_tui.sessions.approval_edits import UNCHANGED, ApprovalEdits

        panel.reopen()
        if self._asked is None:
            return
        edits = self._edits = self._edits or ApprovalEdits(self._tools)
        draft = edits.draft(self._asked)

        def left(edited: Edited[Any] | None) -> None:
            if edited is None:
                self._guard.arm()
                return
            panel.answered = True
            self._edit_ended(panel, edits.decided(draft, edited.value), UNCHANGED)

        screen = EditorScreen(
            draft.what, draft.text_here(), draft.save, lambda error, text: text_problems(error, text, draft.file)
        )
        self._screen.app.push_screen(screen, left)


def _questions(request: ApprovalRequest) -> list[str]:
    return strs_of(request.subject.get("questions"))
