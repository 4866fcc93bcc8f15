"""`ToolSearch`: the model is shown the tools that it looks for, not all there are.

`advisor` is the layer; `indexes` and `semantic` find tools; `reveal` writes calls as the model is
to see them; `costs` and `ledger` say what each way costs and choose one.
"""

from retinue.advisors.toolsearch.advisor import ToolSearch
from retinue.advisors.toolsearch.costs import Prices, SearchReport
from retinue.advisors.toolsearch.indexes import KeywordIndex, MakeIndex, RegexIndex, ToolIndex
from retinue.advisors.toolsearch.semantic import Semantic

__all__ = [
    "KeywordIndex", "MakeIndex", "Prices", "RegexIndex", "SearchReport", "Semantic", "ToolIndex",
    "ToolSearch",
]  # fmt: skip
