"""The loop: plan, execute, evaluate, refine. It has no threads, clock, randomness or network.

`orchestrator.Loop` runs passes, `executor.Executor` steps; `state.OrchestrationState` and `progress.Progress` say
where a run is.
"""
