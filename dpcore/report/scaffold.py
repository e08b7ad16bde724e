"""What every program that a person takes away begins with: its text is carried in the program.

Only the programs of the questions import it, and nothing imports those (`dpcore.report.script` reads their text), so
that no part of the core loads a plotting library.
"""

# mypy: allow-untyped-defs

# %% What it uses
import numpy as np
import plotly.graph_objects as go


def say(name, text):
    """Print one number under its name."""
    print(f"{name}: {text}")


# %% Drawing
BLUE, ORANGE, GREEN, PURPLE, GREY = "#2C7FB8", "#D55E00", "#009E73", "#B0609C", "#7F7F7F"


def figure(title, x, y, log="xy"):
    """An empty figure; ``log`` names its logarithmic axes."""
    fig = go.Figure(layout={"template": "plotly_white", "title": {"text": title}})
    fig.update_xaxes(title_text=x, type="log" if "x" in log else "linear")
    return fig.update_yaxes(title_text=y, type="log" if "y" in log else "linear")


def line(fig, name, x, y, color, dash="solid"):
    """Add a curve; what is not above 0 has no place on a log axis and is left out."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if fig.layout.yaxis.type == "log":
        x, y = x[y > 0.0], y[y > 0.0]
    fig.add_scatter(x=x, y=y, name=name, mode="lines", line={"color": color, "dash": dash})


def point(fig, name, x, y, color):
    """Mark a point."""
    fig.add_scatter(x=[x], y=[y], name=name, mode="markers", marker={"color": color, "size": 12})


def keep(fig, name):
    """Write the figure to a file that opens in a browser without a network."""
    fig.write_html(f"{name}.html", include_plotlyjs="directory")
    print(f"Figure: {name}.html")
