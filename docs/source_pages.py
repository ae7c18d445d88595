"""For mkdocs: gives every source file that the documentation links to a page of its own, and points the links there.

In the repository, and on a host that shows it, such a link leads to the file itself.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?:\.\./)+((?:src|examples)/[\w/.-]+)\.py\b")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each source file that is linked to."""
    linked = {path for file in files.documentation_pages() for path in LINK.findall(file.content_string)}
    for path in sorted(linked):
        source = (ROOT / f"{path}.py").read_text()
        page = f'---\nsearch: {{ exclude: true }}\n---\n# {path}.py\n\n```{{ .python linenums="1" }}\n{source}\n```\n'
        files.append(File.generated(config, f"source/{path}.md", content=page))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to source files lead to those pages."""
    up = "../" * page.file.src_uri.count("/")
    return LINK.sub(lambda link: f"{up}source/{link[1]}.md", markdown)
