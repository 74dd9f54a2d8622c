import { setUpCharts } from "./charts/draw.js";
import { setUpCommands } from "./page/commands.js";
import { setUpContents } from "./page/contents.js";
import { setUpDifferences } from "./page/differences.js";
import { setUpFilters } from "./page/filters.js";
import { setUpHeat } from "./page/heat.js";
import { setUpSorting } from "./page/sorting.js";
import { setUpTheme } from "./page/theme.js";

function start() {
  setUpTheme();
  setUpContents();
  setUpSorting();
  setUpFilters();
  setUpCommands();
  setUpDifferences();
  setUpHeat();
  setUpCharts();
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
