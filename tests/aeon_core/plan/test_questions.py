"""The questions that vague requests of many kinds raise, in plain English, and none for clear ones (FR-011)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.plan.questions import MAX_QUESTIONS, follow_up_questions
from tests.aeon_core.plan.refining import plan_of, step

VAGUE = """
code | write a REST API for invoices
    What should the REST API for invoices do or contain, and for whom?
code | Make the tests pass
    What about the tests should change, and how is that measured?
code | Write some code
    What should the code do or contain, and for whom?
code | Design a database schema for our shop
    What should the database schema for your shop do or contain, and for whom?
data | Plot the data
    Where can one find the data, and in which form is the result wanted?
data | Clean the data
    What about the data should change, and how is that measured?
data | Build a data pipeline
    What should the data pipeline do or contain, and for whom?
operations | Deploy the service to production
    What exactly should be done with the service, and what should come of it?
operations | Migrate our servers to the cloud
    What exactly should be done with your servers, and what should come of it?
operations | Set up a home network
    What should the home network be like, and for whom?
writing | Write a thesis
    What should the thesis be about, and for whom?
writing | Make the report look nicer
    What about the report should change, and how is that measured?
writing | Proofread my text
    Where can one find your text, and in which form is the result wanted?
writing | Draft an email
    What should the email say, and to whom?
maths | Solve the equation
    Where can one find the equation, and in which form is the result wanted?
finance | Please could you sort out my finances
    What exactly should be done with your finances, and what should come of it?
finance | Prepare the quarterly report
    What exactly should be done with the quarterly report, and what should come of it?
law | Draft a contract
    What should the contract be about, and for whom?
travel | Book a hotel
    What must the hotel offer, and at what price?
travel | Plan a trip
    What should the trip include, for whom, and when?
food | Make dinner
    What should dinner be like, and for whom?
health | Create a training schedule
    What should the training schedule be like, and for whom?
learning | Teach me chemistry
    What about chemistry should be learned, and what is known already?
learning | Help me write an application
    What should the application do or contain, and for whom?
marketing | Clean up the mailing list and send a newsletter
    What about the mailing list should change, and how is that measured?
marketing | We need a landing page
    What should the landing page do or contain, and for whom?
people | Improve the onboarding of new hires
    What about the onboarding of new hires should change, and how is that measured?
events | Plan our wedding
    What should your wedding include, for whom, and when?
home | Fix my washing machine
    What is wrong with your washing machine, and what should happen instead?
support | Investigate the issue
    Where does one see the issue, and what should happen instead?
business | Analyse our competitors
    What should be found out about your competitors, and to what end?
shopping | Recommend a good book
    What must the book offer, and at what price?
"""
CLEAR = """
code | Refactor parse_args in cli.py to use argparse subcommands
code | Write a function in Rust that returns the n-th Fibonacci number
writing | Draft a resignation letter to Acme Corp with four weeks' notice
writing | Write a sonnet about the first snow in Vienna
writing | Write a haiku about autumn
writing | Write a poem about love
data | Plot the monthly totals of sales.csv as a line chart
data | Compute the correlation between height and weight in people.csv
maths | Find the derivative of ln(x) at x = 2
maths | Simplify (a + b)^2 - (a - b)^2
operations | Deploy version 2.3.1 of the billing service to the staging cluster
operations | Rotate the logs in /var/log/nginx and keep the last seven days
food | Convert 3 cups of flour to grams
food | Give me a recipe for lentil soup for four people
travel | Plan a weekend in Lisbon for a couple who like seafood, under 400 euros
languages | Translate "See you tomorrow" into Japanese
languages | Explain the difference between affect and effect
history | Who discovered penicillin?
history | List the causes of the Great Depression
health | Describe how vaccines work
finance | Calculate the VAT on 250 euros at 19 %
finance | Estimate the return on 5000 dollars at 4% interest over ten years
data | Write an SQL query that lists customers without an order since January
data | Remove duplicate rows from contacts.csv and save the result as clean.csv
law | Name the three branches of the US government
law | Explain what habeas corpus means
health | Create a workout plan of three 30-minute sessions a week without equipment
writing | Summarise the first chapter of Moby-Dick in one paragraph
code | What is the time complexity of heapsort?
code | Compare Postgres and MySQL by support for JSON
shopping | Write a product description for a ceramic mug that holds 350 ml
operations | Schedule the backup of /home every night at 02:00 with cron
languages | I need a synonym for happy
leisure | Tell me a joke about penguins
code | Write a unit test for parse_date that covers leap years
data | Count how many times the word whale occurs in moby.txt
home | Set the brightness of the lamp in the kitchen to 40 percent
code | Design a REST API with endpoints to create, list and cancel invoices, in FastAPI with PostgreSQL
"""
_TWICE = re.compile(r"\b(\w+) \1\b")


def rows(table: str) -> list[object]:
    found = [re.split(r" \| |\n    ", row) for row in re.split(r"\n(?! )", table.strip())]
    return [pytest.param(*row[1:], id=f"{row[0]}-{number}") for number, row in enumerate(found)]


@pytest.mark.parametrize(("task", "question"), rows(VAGUE))
def test_a_vague_request_is_asked_about_in_its_own_words(task: str, question: str) -> None:
    questions = follow_up_questions(task)

    assert question in questions
    assert len(questions) <= MAX_QUESTIONS
    assert all(each[0].isupper() and each.endswith("?") and not _TWICE.search(each) for each in questions)


@pytest.mark.parametrize("task", rows(CLEAR))
def test_a_clear_request_is_not_asked_about(task: str) -> None:
    assert follow_up_questions(task) == []


def test_the_sets_are_large_and_from_many_domains() -> None:
    vague, clear = rows(VAGUE), rows(CLEAR)
    domains = {line.split(" | ")[0] for line in f"{VAGUE}{CLEAR}".splitlines() if " | " in line}

    assert len(vague) >= 30 <= len(clear)
    assert len(domains) >= 12


@pytest.mark.parametrize(
    "asked", ["To whom should the e-mail go, and what does it say?", "Who says it?"], ids=["a", "b"]
)
def test_a_models_question_that_asks_for_something_else_is_kept(asked: str) -> None:
    assert follow_up_questions("Send the email", asked=[asked])[-1] == asked


@pytest.mark.parametrize("asked", ["To whom and what should the emails say?", "WHAT should the Email say to WHOM?"])
def test_a_models_question_with_the_words_of_a_rules_one_is_left_out(asked: str) -> None:
    own = follow_up_questions("Send the email")

    assert own[0] == "What should the email say, and to whom?"
    assert follow_up_questions("Send the email", asked=[asked]) == own


def test_of_two_questions_of_a_model_with_the_same_words_the_first_is_kept() -> None:
    asked = ["Which currency do the invoices use?", "What currency does the invoice use?", "Which tax rates hold?"]

    assert follow_up_questions("Add 17 and 25", asked=asked) == [asked[0], asked[2]]


def test_when_and_where_are_two_questions() -> None:
    asked = ["When is the meeting?", "Where is the meeting?"]

    assert follow_up_questions("Add 17 and 25", asked=asked) == asked


def test_questions_about_different_values_stay_apart() -> None:
    asked = ["Is port 80 open?", "Is port 443 open?"]

    assert follow_up_questions("Add 17 and 25", asked=asked) == asked


def test_there_are_never_more_than_five_questions() -> None:
    plan = plan_of(*(step(f"s{number}", description="do something") for number in range(4)))

    assert len(follow_up_questions("Make it better", plan, ["Which colour?", "Which size?"])) == MAX_QUESTIONS == 5


@given(st.text(max_size=80), st.lists(st.text(max_size=40), max_size=6))
def test_whatever_is_asked_the_questions_are_few_different_and_stay_when_asked_again(
    task: str, asked: list[str]
) -> None:
    questions = follow_up_questions(task, asked=asked)

    assert len(set(questions)) == len(questions) <= MAX_QUESTIONS
    assert follow_up_questions(task, asked=questions) == questions
