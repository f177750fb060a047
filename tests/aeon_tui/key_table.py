"""What each key means, everywhere in the app: a line a key, with the actions that it has."""

from __future__ import annotations

from typing import NamedTuple


class Meaning(NamedTuple):
    """What one key means, and the ids of the actions behind it."""

    words: str
    ids: frozenset[str]


TABLE = """
question_mark  show the help              app.keys keys.close
f1             show the help              app.keys
q              quit, in a form leave      app.quit trust.cancel new.leave
ctrl+q         quit                       app.quit_anywhere
ctrl+c         copy the selection or quit app.copy
K              change keys                app.edit_keys
comma          open the settings          app.settings
ctrl+p         open the palette           app.palette
ctrl+z         suspend the app            app.suspend
s              start a run                app.new_run
f5             start what is filled in    new.start
ctrl+s         start, or save, what is typed  new.start workflow.begin editor.save fork.start
ctrl+enter     start what is filled in    new.start
n              next, in a dialog no       search.next compare.next run.next_problem confirm.no
N              previous                   search.previous compare.previous run.previous_problem
y              copy, in a dialog yes      app.copy_item confirm.yes
Y              copy the run id            app.copy_run_id
ctrl+o         open a journal             app.open_journal
o              open in the pager          app.open_item
O              open in the editor         app.edit_item
ctrl+y         copy the path              browser.copy_path
x              export                     app.export
e              edit                       settings.edit approval.edit
E              edit the project's         settings.edit_project
d              difference                 run.differences compare.only
delete         delete                     browser.delete settings.remove_rule
backspace      give back                  keys.reset
slash          search or filter           *.filter run.search search.type
v              change how it is shown     browser.preview settings.theme workflow.turn *.beside *.severity *.raw
V              the other way to show it   browser.order compare.swap issues.type workflow.open_all
S              next status                browser.status
ctrl+r         read again                 browser.reload
z              zoom                       run.zoom
f              follow                     run.follow
p              prompt                     run.prompt
t              tool call                  run.tool_call
i              issues of the step         run.issues_of_step
I              issues of all passes       issues.all
R              resume                     run.resume workflow.resume
P              play back                  run.replay
L              label                      run.label
F              fork                       run.fork
H              lineage                    run.lineage
C              compare                    browser.compare run.compare
m              mark                       browser.mark
T              trust                      settings.trust
b              next run of the app        app.next_session
a              approve, or go to it       trust.grant pane.decide app.next_decision approval.approve
A              always allow               approval.always
w              tell it what to fix        approval.reason
r              run this pass again        approval.replay
c              take it as it is           trust.continue approval.accept
X              end it                     run.abort_anywhere workflow.abort_anywhere approval.abort
1              the first pane             run.pane_plan workflow.pane_pipeline
2              the second pane            run.pane_step workflow.pane_conversation
3              the third pane             run.pane_ttl workflow.pane_artifact
4              the fourth pane            run.pane_convergence
5              the fifth pane             run.pane_issues
6              the sixth pane             run.pane_repairs
7              the seventh pane           run.pane_answer
8              the eighth pane            run.pane_log
9              the decision               run.pane_decision workflow.pane_decision
left_square_bracket    earlier pass       run.pass_back fork_start.previous
right_square_bracket   later pass         run.pass_on fork_start.next
left_curly_bracket     earlier record     run.record_back
right_curly_bracket    later record       run.record_on
left_parenthesis       another first pass run.from_earlier
right_parenthesis      another first pass run.from_later
less_than_sign         another last pass  run.to_earlier
greater_than_sign      another last pass  run.to_later
space          pause, in a form tick      run.pause replay.pause tick.toggle
plus           faster                     replay.faster
equals_sign    faster                     replay.faster
minus          slower                     replay.slower
full_stop      one record                 replay.step
enter          open or confirm            lines.choose *.open *.demo *.submit *.quote tick.toggle ttl.why
ctrl+j         new line, in feedback      feedback.break
shift+enter    new line, in feedback      feedback.break
alt+enter      new line, in feedback      feedback.break
escape         back                       *.back *.cancel *.leave *.close *.runs confirm.no run.leave_past
tab            next part                  *.next compare.side filter.complete
shift+tab      previous part              pane.previous new.previous compare.side
left           move or fold               *.previous *.tab_left compare.left workflow.artifact_before plan.fold
right          move or open             *.next *.tab_right compare.right workflow.artifact_next lines.choose plan.unfold
up             move                       *.previous lines.up
down           move                       *.next lines.down filter.leave
h              move or fold               *.previous *.tab_left compare.left workflow.artifact_before plan.fold
l              move or open             *.next *.tab_right compare.right workflow.artifact_next lines.choose plan.unfold
k              move                       *.previous lines.up
j              move                       *.next lines.down
g              move                       lines.top
G              move                       lines.end
home           move                       lines.top
end            the end, now               lines.end run.now replay.end
pageup         move                       lines.page_up
pagedown       move                       lines.page_down
ctrl+u         move                       lines.page_up
ctrl+d         move                       lines.page_down
"""


def key_table() -> dict[str, Meaning]:
    """Return the meaning of each key by Textual's name for it."""
    table = {}
    for line in TABLE.strip().splitlines():
        key, *words = line.split()
        ids = frozenset(word for word in words if "." in word)
        table[key] = Meaning(" ".join(word for word in words if word not in ids), ids)
    return table
