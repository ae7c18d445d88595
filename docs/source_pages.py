"""For mkdocs: gives every source file that the documentation links to a page of its own, and points the links there.

In the repository, and on a host that shows it, such a link leads to the file itself.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = {"py": "python", "js": "javascript"}
LINK = re.compile(r"(?:\.\./)+((?:src|examples)/[\w/.-]+)\.(py|js)\b")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each source file that is linked to."""
    linked = {path for file in files.documentation_pages() for path in LINK.findall(file.content_string)}
    for path, kind in sorted(linked):
        source = (ROOT / f"{path}.{kind}").read_text()
        block = f'```{{ .{LANGUAGES[kind]} linenums="1" }}\n{source}\n```\n'
        page = f"---\nsearch: {{ exclude: true }}\n---\n# {path}.{kind}\n\n{block}"
        files.append(File.generated(config, f"source/{path}.{kind}.md", content=page))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to source files lead to those pages."""
    up = "../" * page.file.src_uri.count("/")
    return LINK.sub(lambda link: f"{up}source/{link[1]}.{link[2]}.md", markdown)
