// Sorts a long table by the column whose head is clicked: as numbers where all cells begin with one, else as text.
// A second click turns the order around. Cells without a number, such as dashes, come last.
(() => {
  const LONG = 30;
  const collator = new Intl.Collator("en", { numeric: true });

  const readNumber = (text) => Number.parseFloat(text.replaceAll(",", "").replace("−", "-"));

  const compareCells = (first, second, direction) => {
    const [a, b] = [readNumber(first), readNumber(second)];
    if (Number.isNaN(a) !== Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1;
    return direction * (Number.isNaN(a) ? collator.compare(first, second) : a - b);
  };

  const sortBy = (table, column, direction) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, text: row.cells[column].textContent.trim() }));
    rows.sort((a, b) => compareCells(a.text, b.text, direction));
    body.append(...rows.map(({ row }) => row));
  };

  const makeSortable = (table) => {
    [...table.tHead.rows[0].cells].forEach((head, column, heads) => {
      const button = document.createElement("button");
      button.className = "sort";
      button.title = "Sort by this column";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const isAscending = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
        sortBy(table, column, isAscending ? 1 : -1);
      });
    });
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("table").forEach((table) => {
      if (table.tHead && table.tBodies[0].rows.length >= LONG) makeSortable(table);
    });
  });
})();
