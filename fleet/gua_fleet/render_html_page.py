"""The frame of every HTML page of ours, its style and its script. Pure.

A page loads nothing and reads without the script, which only sorts tables.
"""

from __future__ import annotations

from html import escape

# The page may run its own script and style, and load nothing whatsoever.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)


def page(title: str, body: str, *, head: str = "", style: str = "", script: str = "") -> str:
    """A whole page. title: text. body, head: HTML. style, script: what this page has besides ours."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n{head}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n{body}\n"
        f"<script>{SCRIPT}{script}</script>\n</body>\n</html>\n"
    )


STYLE = """
:root { color-scheme: light dark; --ink: #1d2530; --soft: #5b6673; --line: #d5dbe2; --paper: #fff; --box: #f4f6f8;
  --active: #1f6fb4; --idle-held: #e08a1e; --truly-idle: #9fd3b4; --unknown: #8b8f98; --unobserved: #e3e6ea;
  --warn: #fff4e0; --warn-line: #e08a1e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaef; --soft: #9aa5b1; --line: #38424e; --paper: #14191f;
  --box: #1d242c; --active: #4b9be0; --truly-idle: #4d9a70; --unobserved: #2f3842; --warn: #3a2e18; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); font-size: .9em; } .free { font-weight: 600; }
.warn { background: var(--warn); border-left: 4px solid var(--warn-line); padding: .5rem .8rem; margin: .8rem 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem; margin: 1rem 0; }
.figure { background: var(--box); border-top: 5px solid; border-radius: 4px; padding: .6rem .8rem; }
.figure b { display: block; font-size: 1.9rem; line-height: 1.15; }
.figure.active { border-color: var(--active); } .figure.idle-held { border-color: var(--idle-held); }
.figure.truly-idle { border-color: var(--truly-idle); } .figure.unknown { border-color: var(--unknown); }
svg .active { fill: var(--active); } svg .idle-held { fill: var(--idle-held); }
svg .truly-idle { fill: var(--truly-idle); } svg .unknown { fill: var(--unknown); }
svg .unobserved { fill: var(--unobserved); } svg .cell { fill: none; stroke: var(--line); stroke-width: 1; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
svg.bar { display: block; width: 100%; min-width: 7rem; height: 14px; border-radius: 3px; }
.big svg.bar { height: 30px; } svg.heat { width: 100%; max-width: 34rem; }
.heats { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem; }
.whole { display: inline-block; } .legend span { white-space: nowrap; } .legend span { margin-right: 1rem; }
.legend i { display: inline-block; width: .8em; height: .8em; margin-right: .35em; border-radius: 2px; }
.wide { overflow-x: auto; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .28rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } td.r, th.r { text-align: right; } td.bar { width: 24%; }
td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 8rem; }
body.sorts th { cursor: pointer; } th[aria-sort] { color: var(--ink); }
th[aria-sort=ascending]::after { content: " \\2191"; } th[aria-sort=descending]::after { content: " \\2193"; }
ul { padding-left: 1.2rem; } li { overflow-wrap: anywhere; }
@media screen and (max-width: 40rem) { body { padding: .9rem; font-size: 14px; }
  th, td { padding: .28rem .4rem; } td.bar { width: 6rem; } svg.bar { min-width: 5rem; }
  th:first-child, td:first-child { position: sticky; left: 0; background: var(--paper); min-width: 6.5rem; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --line: #ccc; --paper: #fff; --box: #fff;
    --active: #1f6fb4; --idle-held: #e08a1e; --truly-idle: #9fd3b4; --unobserved: #e3e6ea; --warn: #fff; }
  html { font-size: 11px; } body { max-width: none; padding: 0; font-size: 1rem; }
  svg rect, .legend i, .figure { print-color-adjust: exact;
    -webkit-print-color-adjust: exact; } .details { break-before: page; } h2 { break-after: avoid; }
  tr, .figure, svg, .heats { break-inside: avoid; } .wide { overflow: visible; } th, td { padding: .15rem .35rem; } }
"""

SCRIPT = """
document.body.classList.add("sorts");
const seconds = { d: 86400, h: 3600, min: 60, s: 1 };
const size = text => {
  const spans = [...text.matchAll(/(\\d+) (d|h|min|s)\\b/g)];
  if (spans.length) return spans.reduce((sum, [, number, unit]) => sum + number * seconds[unit], 0);
  const figure = text.replace(/[,*>]/g, "").match(/^<?\\s*-?[\\d.]+/);
  return text === "-" ? -Infinity : text.startsWith("<") ? 1e-9 : figure ? parseFloat(figure[0]) : NaN;
};
document.querySelectorAll("table.sortable th").forEach(head => head.addEventListener("click", () => {
  const table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
  const up = head.getAttribute("aria-sort") === "descending", right = head.classList.contains("r");
  const text = row => row.cells[column].textContent.trim();
  const rows = [...body.rows].sort((a, b) => {
    const [x, y] = [size(text(a)), size(text(b))];
    return right && !isNaN(x) && !isNaN(y) ? (x < y ? -1 : x > y ? 1 : 0)
      : text(a).localeCompare(text(b), undefined, { numeric: true });
  });
  table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  (up ? rows : rows.reverse()).forEach(row => body.append(row));
}));
"""
