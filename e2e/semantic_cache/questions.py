"""Questions, paraphrases of them, and questions that look alike and have another answer.

Written for this measurement by the project's authors; not a sample of real traffic.
"""

from __future__ import annotations

from typing import NamedTuple


class Intent(NamedTuple):
    """A question that was answered before."""

    question: str
    same: tuple[str, ...]
    """The same answer is right."""
    other: tuple[str, ...]
    """Another answer is right."""


INTENTS = (
    Intent(
        "How do I reset my password?",
        ("How can I reset my password?", "I forgot my password, how do I reset it?"),
        ("How do I change my user name?", "How do I reset my phone?"),
    ),
    Intent(
        "What is the capital of France?",
        ("What's the capital city of France?", "Which city is the capital of France?"),
        ("What is the capital of Finland?", "What is the population of France?"),
    ),
    Intent(
        "How long does shipping to Germany take?",
        ("How long does delivery to Germany take?", "How many days does shipping to Germany take?"),
        ("How long does shipping to Japan take?", "How much does shipping to Germany cost?"),
    ),
    Intent(
        "How do I reverse a list in Python?",
        ("How can I reverse a list in Python?", "How to reverse a Python list?"),
        ("How do I sort a list in Python?", "How do I reverse a string in Java?"),
    ),
    Intent(
        "What is the boiling point of water at sea level?",
        (
            "At sea level, what is the boiling point of water?",
            "At which temperature does water boil?",
        ),
        (
            "What is the freezing point of water at sea level?",
            "What is the boiling point of ethanol?",
        ),
    ),
    Intent(
        "Can I cancel my subscription at any time?",
        (
            "Am I able to cancel my subscription at any time?",
            "May I cancel the subscription anytime?",
        ),
        ("Can I pause my subscription at any time?", "Can I upgrade my subscription at any time?"),
    ),
    Intent(
        "Who wrote Pride and Prejudice?",
        ("Who is the author of Pride and Prejudice?", "Who was Pride and Prejudice written by?"),
        ("When was Pride and Prejudice written?", "Who wrote Sense and Sensibility?"),
    ),
    Intent(
        "How do I install Docker on Ubuntu?",
        ("How can I install Docker on Ubuntu?", "How to install Docker on an Ubuntu machine?"),
        ("How do I uninstall Docker on Ubuntu?", "How do I install Docker on Windows?"),
    ),
    Intent(
        "What are the opening hours on Sunday?",
        ("When are you open on Sunday?", "What are your opening hours on Sundays?"),
        ("What are the opening hours on Saturday?", "What are the opening hours on holidays?"),
    ),
    Intent(
        "Is the battery of the X200 replaceable?",
        (
            "Can the battery of the X200 be replaced?",
            "Is it possible to replace the X200's battery?",
        ),
        ("Is the battery of the X300 replaceable?", "Is the screen of the X200 replaceable?"),
    ),
    Intent(
        "How many calories are in a banana?",
        ("How many calories does a banana have?", "What is the number of calories in a banana?"),
        ("How many calories are in an apple?", "How much sugar is in a banana?"),
    ),
    Intent(
        "What does HTTP status 404 mean?",
        ("What is the meaning of HTTP status 404?", "What does the HTTP status code 404 mean?"),
        ("What does HTTP status 403 mean?", "What does HTTP status 500 mean?"),
    ),
    Intent(
        "How do I export my data as CSV?",
        ("How can I export my data as CSV?", "How do I export my data to a CSV file?"),
        ("How do I import my data from CSV?", "How do I export my data as PDF?"),
    ),
    Intent(
        "What is the deadline for the tax return in 2024?",
        ("When is the 2024 tax return due?", "By when must the tax return for 2024 be filed?"),
        (
            "What is the deadline for the tax return in 2023?",
            "What is the income tax rate in 2024?",
        ),
    ),
    Intent(
        "How do I connect my headphones by Bluetooth?",
        (
            "How can I connect my headphones via Bluetooth?",
            "How do I pair my Bluetooth headphones?",
        ),
        (
            "How do I disconnect my Bluetooth headphones?",
            "How do I connect my printer by Bluetooth?",
        ),
    ),
    Intent(
        "Does the free plan include support?",
        ("Is support included in the free plan?", "Do I get support with the free plan?"),
        ("Does the team plan include support?", "Does the free plan include storage?"),
    ),
    Intent(
        "How far is the Moon from the Earth?",
        ("What is the distance between the Moon and the Earth?", "How far away is the Moon?"),
        ("How far is the Sun from the Earth?", "How old is the Moon?"),
    ),
    Intent(
        "How do I undo the last commit in Git?",
        ("How can I undo the last commit in Git?", "How to undo the most recent Git commit?"),
        ("How do I undo the last merge in Git?", "How do I edit the last commit message in Git?"),
    ),
    Intent(
        "What is your refund policy?",
        ("What's your policy on refunds?", "Could you tell me your refund policy?"),
        ("What is your privacy policy?", "What is your exchange policy?"),
    ),
    Intent(
        "How do I cook rice without a rice cooker?",
        (
            "How can I cook rice without a rice cooker?",
            "How to cook rice if I have no rice cooker?",
        ),
        ("How do I cook rice in a rice cooker?", "How do I cook pasta without a stove?"),
    ),
    Intent(
        "Which vaccines do I need for Kenya?",
        ("What vaccines are needed for Kenya?", "Which vaccinations do I need for Kenya?"),
        ("Which vaccines do I need for Brazil?", "Which visa do I need for Kenya?"),
    ),
    Intent(
        "How do I take a screenshot on a Mac?",
        ("How can I take a screenshot on a Mac?", "How to make a screenshot on macOS?"),
        ("How do I take a screenshot on Windows?", "How do I record the screen on a Mac?"),
    ),
    Intent(
        "Is it safe to take aspirin and ibuprofen together?",
        ("Can I safely take aspirin and ibuprofen together?", "Is aspirin with ibuprofen safe?"),
        ("Is it safe to take aspirin and alcohol together?", "Is it safe to take aspirin daily?"),
    ),
    Intent(
        "How do I delete my account?",
        ("How can I delete my account?", "How do I get my account deleted?"),
        ("How do I create an account?", "How do I delete my order?"),
    ),
)
