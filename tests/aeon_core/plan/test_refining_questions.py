"""Follow-up questions for vague requests, none for clear ones (adaptive FR-011, FR-012)."""

from __future__ import annotations

import pytest

from aeon_core.plan.questions import MAX_QUESTIONS, follow_up_questions
from tests.aeon_core.plan.refining import plan_of, step

CLEAR = """
What is the capital of France?
Add 17 and 25
add two numbers
Sum the numbers from 1 to 100
Translate 'good morning' into French
Write a Python function that reverses a linked list
Summarise the file report.txt in three sentences
Explain how the TCP handshake works
Prove that sqrt(2) is irrational
List the five largest countries by area
Write a haiku about autumn leaves
Convert 100 km to miles
Rename all .jpeg files in ./photos to .jpg
Compare quicksort and mergesort by worst-case complexity
Explain photosynthesis to a ten-year-old
Who wrote Hamlet?
Delete the empty directories under /tmp/build
Fix the failing test test_login in tests/test_auth.py
Write an email to my landlord saying that the heating has been broken since Monday
Calculate 15% of 2400 and round to the nearest integer
Plan a three-day trip to Rome for two adults in May with a budget of 900 euros
How many moons does Jupiter have?
Multiply 6 by 7, then subtract 2
Echo hello world
Sort the list [3, 1, 2] in descending order
Create a table users with columns id, name and email in SQLite
Count the words in README.md
Draft a 200-word product description of a stainless steel water bottle for hikers
Solve the equation 3x + 5 = 20 for x
Find the median of 4, 8, 15, 16, 23, 42
Describe the main causes of the First World War in two paragraphs
Build a REST API in FastAPI with endpoints for creating, listing and deleting todo items, stored in SQLite
Implement binary search over a sorted array of integers in Go, returning -1 if the value is missing
Why is the sky blue?
Reverse the string "stressed"
Convert the CSV file sales.csv to JSON, one object per row
Give me a recipe for banana bread without eggs
Write a limerick about a cat who hates Mondays
Restart the nginx service on host web-01 and check that port 443 answers
Upgrade Django from 4.2 to 5.0 in requirements.txt and run the test suite
Schedule a 30 minute meeting with Anna and Tom on Friday at 10:00
Analyse sales.csv and report the total revenue per region for 2024
Name three differences between mitosis and meiosis
Compute the factorial of 12
Define entropy
Write a SQL query that returns the ten customers with the highest order total in 2023
Please compute the area of a circle with radius 4
Refactor the function parse_date in utils.py so that it accepts ISO 8601 strings
Explain the difference between TCP and UDP
Integrate x^2 from 0 to 3
Who painted the Mona Lisa?
Subtract 45 from 120
Translate the sentence "Where is the station?" into Spanish
Write a bash one-liner that counts the lines of every .py file in src/
Summarize chapter 3 of Pride and Prejudice in 100 words
What is the boiling point of ethanol at sea level?
Generate 10 random usernames made of an adjective and an animal
Divide 144 by 12
List the planets of the solar system in order of size
Explain the plot of Macbeth in five bullet points
Convert 72 degrees Fahrenheit to Celsius
Find all TODO comments under src and write them to todos.md
Add a docstring to every public function in core/models.py
Compute the standard deviation of 2, 4, 4, 4, 5, 5, 7, 9
Write a unit test for the function slugify that covers empty strings and umlauts
Create a bar chart of monthly rainfall from rain.csv with matplotlib and save it as rain.png
Is 97 a prime number?
Draft a cover letter for a junior data analyst position at Siemens, mentioning SQL and Power BI
Make a shopping list for a vegetarian lasagne for six people
Rewrite "the ball was thrown by John" in the active voice
Differentiate sin(x) * x^2 with respect to x
Which element has the atomic number 26?
Set the TTL of the DNS record www.example.org to 300 seconds
Write a four-line poem about the sea in iambic tetrameter
Migrate the table orders from MySQL 5.7 to PostgreSQL 15, keeping all indexes and foreign keys
Explain recursion to a beginner with an example in JavaScript
Tell me the current time in Tokyo
Count the vowels in the word "onomatopoeia"
Describe the water cycle
Compare the GDP of Germany and France in 2022
Given the list of prices 19.99, 5.49 and 3.00, compute the total including 8% sales tax.
Read config.yml and print the value of server.port
Write a regular expression that matches ISO dates
Explain why the French Revolution began
How do I reverse a list in Python?
What are the side effects of ibuprofen?
Find the shortest path from A to D in the graph A-B:1, B-C:2, C-D:1, A-D:5
Create a Kubernetes deployment manifest for nginx with 3 replicas and a 256Mi memory limit
Summarise the main argument of Kant's Critique of Pure Reason
Suggest three names for a golden retriever puppy
Berechne 17 + 25
Translate the following text to German: The weather is nice today.
Check whether 2024 is a leap year
Write a story about a dragon who is afraid of fire
Multiply the two matrices [[1,2],[3,4]] and [[5,6],[7,8]]
Download https://example.org/data.csv and count its rows
Who won the 2018 World Cup?
Echo the message "hi" and then add 2 and 3
Calculate the monthly payment of a 200000 euro mortgage at 3% over 25 years
Generate a random password of 16 characters
Replace all tabs by four spaces in main.c
Explain what a monad is
Describe how to change a bicycle tyre step by step
Write a thank-you note to Grandma for the knitted scarf
Give the Spanish word for butterfly
Run pytest and report which tests fail
Create a git branch named feature/login and push it to origin
Implement an LRU cache class in Python with get and put in O(1)
Design a database schema for a library with books, members and loans, in PostgreSQL, third normal form
Explain the Pythagorean theorem
Roll a six-sided die 5 times and average the results
Sort these names alphabetically: Zoe, Adam, Maria
Optimise the SQL query in slow.sql so that it runs under 200 ms
"""
VAGUE = """
build a REST API
Make it better
Improve the performance
Fix the bug
Help me with my project
Create a website
Plan a trip
Analyze the data
Organise the files
Design a system architecture for a web application with user authentication
design a distributed system architecture
Do the usual
Set up the server
Write a report
Clean up the code
optimize our database
Make a good marketing plan
Write a story
Prepare the presentation
Handle the customer complaints
Update the documentation
Automate the process
Process the files appropriately
Research the market
Send the email
Schedule a meeting
Recommend a laptop
Make some improvements to the app
Fix everything that is broken
Do something nice for the team
Improve this
Can you help me?
Write some code
Make the app faster and more user-friendly
Refactor the code to be cleaner
Translate this
Summarise the document
Create a modern, scalable platform
Develop a mobile app
Build something cool
Deal with the issues
Plan the event
I need a better workflow
Please handle it
Design a logo
Write a blog post
Implement authentication
Create a dashboard
Fix the problem with the deployment
How do I fix it?
Write an essay
Create an app
Build me a website
Make our onboarding better
Review the contract
Improve sales
Set up monitoring
Design a database
Write tests
Do some research
Prepare a budget
Clean the data
Help with the launch
Create a training program
Develop a strategy
Fix it
Create a presentation for the meeting
Make the report look nicer
Migrate our infrastructure
Write documentation
Organise a party
Optimise the query
Handle errors properly
Build a chatbot
Improve customer satisfaction
Plan my week
Investigate the issue
Come up with something
Sort things out
Generate a document
Create a plan
Make a video
Do my homework
Set up a new project
Improve code quality
Build an e-commerce site
Refactor everything
Write an article
Design a user interface
Build a machine learning model
Prepare for the interview
Make money
Update the system
Check the logs
Fix the tests
Optimise performance
Solve the problem
Write a letter
Create some content
Plan the migration
Manage the project
Review the code
Help me learn
Produce a summary
Draft an email
Organize a conference
Develop software
Generate ideas
Build a data pipeline
Create a REST API with authentication
Look into this
Figure it out
Get it done
"""


def numbered(tasks: str) -> list[object]:
    return [pytest.param(task, id=str(number)) for number, task in enumerate(tasks.strip().splitlines())]


@pytest.mark.parametrize("task", numbered(CLEAR))
def test_a_clear_task_is_not_asked_about(task: str) -> None:
    assert follow_up_questions(task) == []


@pytest.mark.parametrize("task", numbered(VAGUE))
def test_a_vague_task_is_asked_about(task: str) -> None:
    questions = follow_up_questions(task)

    assert 1 <= len(questions) <= MAX_QUESTIONS
    assert all(question.endswith("?") for question in questions)


def test_the_questions_name_what_is_open() -> None:
    assert follow_up_questions("build a REST API")[0] == "What should the REST API do or contain, and for whom?"
    assert follow_up_questions("Make it better")[:2] == [
        "What does 'it' stand for?",
        "What does 'better' mean here, and how would one see that it is reached?",
    ]


def test_details_make_a_vague_task_clear() -> None:
    detailed = (
        "build a REST API in FastAPI with CRUD endpoints for books, stored in SQLite, with tests in tests/test_books.py"
    )

    assert follow_up_questions("build a REST API") != []
    assert follow_up_questions(detailed) == []


def test_a_models_questions_come_after_those_of_the_rules_each_once() -> None:
    own = follow_up_questions("Fix the bug")
    merged = follow_up_questions("Fix the bug", asked=["Which  bug?", own[0].upper(), "Which bug?", " "])

    assert merged == [*own, "Which bug?"]
    assert follow_up_questions("Add 17 and 25", asked=["Why?"]) == ["Why?"]


def test_vague_steps_are_asked_about_whether_the_task_is_vague_or_clear() -> None:
    plan = plan_of(step("s1", description="do something"), step("s2", description="count the words of a.txt"))
    question = "What does step 's1' mean by 'do something'?"

    assert question in follow_up_questions("Do the usual", plan)
    assert follow_up_questions("Add 17 and 25", plan) == [question]


def test_steps_that_say_what_they_do_or_have_run_are_not_asked_about() -> None:
    plan = plan_of(
        step("s1", "complete", description="do something"),
        step("s2", description="do stuff", tool="echo", agent=None, arguments={"message": "hi"}),
        step("s3", description="count the words of a.txt"),
        step("s4", "pending", step("s5", description="count the words of b.txt"), description="do the things"),
    )

    assert follow_up_questions("Add 17 and 25", plan) == []


@pytest.mark.parametrize("task", ["", "   ", "?", "\n", "42", "\U0001f600", "a" * 100_000, "x, " * 5000])
def test_any_text_can_be_asked_about(task: str) -> None:
    assert len(follow_up_questions(task)) <= MAX_QUESTIONS
