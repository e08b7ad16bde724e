"""User-level DP-SGD: how many examples of one user a training by DP-SGD may see, and whom it draws."""

from dpcore.answer import Answer
from dpcore.examples_per_user.answer import build_answer
from dpcore.examples_per_user.answer.answer import solve_beside_page
from pages.examples_per_user.question import QUESTION
from pages.shared.render.question_page import Page


class ExamplesPage(Page):
    """The page *User-level DP-SGD*."""

    def describe_files(self, answer: Answer) -> str:
        """Return the heading of the single files among the downloads."""
        return "**Parts of it**"

    def write_file_label(self, file_name: str) -> str:
        """Return the text of the button of the table of bounds."""
        return "All bounds, both ways (CSV)"


ExamplesPage(QUESTION, solve_beside_page, build_answer, shows_progress_below=True).show()
