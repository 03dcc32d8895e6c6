"""The part of the documentation site that MkDocs does not do by itself: a hook of mkdocs.yml.

The pages are the Markdown files of the repository, where they stand. A link to another file of the repository leads to
the repository's address. These mistakes are warnings, which `strict` makes errors: a link that leads nowhere, also in
raw HTML, and a page that the site shows otherwise than GitHub does.
"""

import functools
import html
import logging
import pathlib
import posixpath
import re
import subprocess
from urllib.parse import unquote, urlsplit

import mdformat
from markdown_it import MarkdownIt
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[3]
# MkDocs counts the warnings of its own loggers.
LOG = logging.getLogger("mkdocs.hooks.repository")
COMMONMARK = MarkdownIt("commonmark").enable("table")
# In HTML that Markdown has made, a `>` stands only at the end of a tag: in text and code it is escaped.
ADDRESS = re.compile(r'(?<=\s)(href|src|srcset)="([^"]*)"(?=[^<>]*>)')
NO_BLOCK = re.compile(r'<a class="headerlink".*?</a>|</?(?!(?:h\d|img|li|ol|pre|td|th|tr|ul)\b)[^>]*>', re.DOTALL)


@functools.cache
def repository_files():
    """The files of the repository: those that git tracks or would track. Built files are not there in a fresh clone."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    paths = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    return [path for path in paths if (ROOT / path).is_file()]


@functools.cache
def repository_folders():
    """Their folders."""
    return {str(folder) for path in repository_files() for folder in pathlib.PurePosixPath(path).parents}


def on_files(files, config):
    """Adds the Markdown files of the repository, and their pictures."""
    for path in repository_files():
        if path.endswith((".md", ".svg", ".png")):
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))


def on_page_markdown(markdown, **_):
    """Indents lists by the four spaces that Python-Markdown needs. GitHub, and so the documents, need fewer."""
    return mdformat.text(markdown, extensions={"mkdocs", "tables"})


def on_page_content(content, page, **_):
    """Compares the page with that of a parser for CommonMark, as GitHub's is one."""
    here, there = outline(content), outline(COMMONMARK.render(page.file.content_string))
    if here != there:
        at = len(posixpath.commonprefix([here, there]))
        LOG.warning(
            f"{page.file.src_uri}: after '{here[max(0, at - 40) : at]}' the site shows '{here[at : at + 40]}', and "
            f"GitHub '{there[at : at + 40]}': write it so that both read it alike"
        )


def outline(content):
    """The text of a page with the names of its blocks, without spaces."""
    blocks = re.sub(r"(<\w+)[^>]*", r"\1", NO_BLOCK.sub("", content))
    return re.sub(r"\s+", "", html.unescape(blocks))


def on_env(env, config, files):
    """Resolves the links that MkDocs has left: those to other files of the repository, and those in raw HTML."""
    for file in files.documentation_pages():

        def resolved(found, page=file.page):
            return f'{found[1]}="{html.escape(resolve(html.unescape(found[2]), page, config, files))}"'

        file.page.content = ADDRESS.sub(resolved, file.page.content)


def resolve(link, page, config, files):
    """The address of a link in the site or in the repository."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return link
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), unquote(parts.path)))
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    target = files.get_file_from_path(path) if parts.path else page.file
    if target:
        if fragment and target.page and parts.fragment not in target.page.present_anchor_ids:
            LOG.warning(f"{page.file.src_uri}: the link {link} names no heading of {target.src_uri}")
        return target.url_relative_to(page.file) + fragment if parts.path else link
    if any(path == file.dest_uri for file in files):
        return link  # MkDocs has resolved it, and checks its anchor.
    kind = "tree" if path in repository_folders() else "blob"
    if kind == "blob" and path not in repository_files():
        LOG.warning(
            f"{page.file.src_uri}: the link {link} leads to no file of the repository: write it relative to the page, "
            "and link no file that git ignores"
        )
    return "/".join((config.extra["repository"], kind, config.extra["ref"], path + fragment))
