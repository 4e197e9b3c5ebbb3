// The style sheet of HTML reports: light and dark by the reader's choice, light in print. Colours of series are Okabe
// and Ito's, which the colour-blind tell apart, with the yellow replaced since it does not show on white.
#pragma once

namespace lra {

inline constexpr const char* kHtmlStyle = R"(:root {
  --page: #ffffff; --text: #1b1f24; --quiet: #57606a; --rule: #d0d7de; --grid: #dfe3e8; --band: #f6f8fa;
  --better: #00634a; --worse: #9a3412;
  --s0: #1b1f24; --s1: #0072b2; --s2: #d55e00; --s3: #007a58; --s4: #b1488a; --s5: #a16a00; --s6: #2f8fc4; --s7: #882255;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --text: #e6e9ed; --quiet: #a2abb6; --rule: #3a414a; --grid: #2c323a; --band: #1d2127;
    --better: #4fd1a5; --worse: #ff9d6b;
    --s0: #f0f3f6; --s1: #5db4f0; --s2: #ff8a3d; --s3: #35c796; --s4: #e48fc2; --s5: #f0b429; --s6: #9ad4f7; --s7: #e0799f;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0.5rem 0 0.25rem; }
h2 { font-size: 1.35rem; margin: 2.75rem 0 0.5rem; padding-top: 0.6rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.08rem; margin: 1.75rem 0 0.4rem; }
p { max-width: 48rem; margin: 0.5rem 0; overflow-wrap: anywhere; }
.quiet, figcaption, caption, .notes, details { color: var(--quiet); font-size: 0.9rem; }
code, .name { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 0.92em;
  overflow-wrap: anywhere; }
ul { padding-left: 1.3rem; max-width: 52rem; }
li { margin: 0.25rem 0; overflow-wrap: anywhere; }
.summary { list-style: none; padding: 0; }
.summary li { padding-left: 1.6rem; text-indent: -1.6rem; }
.summary li::before { content: attr(data-mark); display: inline-block; width: 1.6rem; text-indent: 0; font-weight: 700; }
.better::before { color: var(--better); } .worse::before { color: var(--worse); }
nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1.1rem; list-style: none; padding: 0; max-width: none; }
a { color: inherit; }
.box { overflow-x: auto; margin: 0.6rem 0; max-width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.92rem; }
caption { text-align: left; padding: 0.2rem 0; }
caption span { display: inline-block; position: sticky; left: 0; max-width: min(48rem, calc(100vw - 2rem)); }
.wide tbody th { white-space: nowrap; max-width: none; }
th, td { padding: 0.28rem 0.7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
thead th { border-bottom: 2px solid var(--quiet); vertical-align: bottom; }
tbody th { font-weight: 500; text-align: left; max-width: 24rem; white-space: normal; overflow-wrap: break-word; }
thead th:first-child { text-align: left; }
tbody tr:nth-child(even) { background: var(--band); }
sup { line-height: 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1.25rem 2rem;
  align-items: start; margin: 1rem 0; }
.maps { grid-template-columns: repeat(auto-fit, minmax(min(100%, 40rem), 1fr)); }
figure { margin: 0; min-width: 0; }
figure h4 { margin: 0 0 0.2rem; font-size: 1rem; }
figure > svg { display: block; width: 100%; max-width: 36rem; height: auto; color: var(--text); }
figure > svg text { paint-order: stroke; stroke: var(--page); stroke-width: 4px; stroke-linejoin: round; }
figure img { max-width: 100%; height: auto; background: #ffffff; display: block; }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; list-style: none; padding: 0; max-width: none; }
.sample { width: 34px; height: 12px; margin: 0 0.4rem; vertical-align: baseline; }
summary { cursor: pointer; padding: 0.2rem 0; }
@media (max-width: 40rem) {
  main { padding: 0.75rem 0.9rem 3rem; }
  h1 { font-size: 1.45rem; }
  th, td { padding: 0.25rem 0.5rem; }
  tbody th { max-width: 10rem; }
}
@media print {
  body { font-size: 10pt; }
  main { max-width: none; padding: 0; }
  nav, summary, details:not([open]) { display: none; }
  .box { overflow: visible; }
  table { font-size: 8pt; } th, td { padding: 0.15rem 0.35rem; }
  .figures { display: block; }
  figure { display: inline-block; width: 47%; margin: 0 1% 1rem; vertical-align: top; break-inside: avoid; }
  .quiet, figcaption, caption, .notes { font-size: 8pt; }
  .wide { page: wide; }
  .wide table { width: 100%; table-layout: fixed; font-size: 5.5pt; }
  .wide th, .wide td { white-space: normal; overflow-wrap: anywhere; padding: 0.1rem; }
  .wide tbody th { white-space: normal; }
  h2, h3, h4 { break-after: avoid; } tr { break-inside: avoid; }
  a { text-decoration: none; }
}
@page wide { size: landscape; }
)";

}  // namespace lra
