import { setUpCharts } from "./charts/draw.js";
import { setUpCommands } from "./page/commands.js";
import { setUpContents } from "./page/contents.js";
import { setUpDifferences } from "./page/differences.js";
import { setUpFilters } from "./page/filters.js";
import { setUpHeat } from "./page/heat.js";
import { setUpSorting } from "./page/sorting.js";
import { setUpTargets } from "./page/targets.js";
import { setUpTheme } from "./page/theme.js";

// All that concerns a part of the page; such a part comes later, too, where a page follows what goes on.
function setUp(root) {
  setUpSorting(root);
  setUpFilters(root);
  setUpCommands(root);
  setUpDifferences(root);
  setUpHeat(root);
  setUpCharts(root);
}

function start() {
  setUpTheme();
  setUpContents();
  setUp(document);
  setUpTargets();
  document.addEventListener("pages:replaced", (event) => setUp(event.target));
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
