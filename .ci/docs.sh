# Makes the site: the pages of docs/ with navigation and search, and the reference out of the sources.

site_venv=build/site-venv
packages_site=(doxygen)
packages_site_test=(chromium-headless-shell git)

# docs: the site in build/site. Nothing but packages comes from the network, neither for the build nor for who reads it.
docs() {
  (($# == 0)) || die "docs takes no arguments, but got '$*'"
  lock
  need_packages "${packages_site[@]}"
  need_site_environment
  # mkdocs-material has a notice in 40 lines; the formatter of signatures is looked for in PATH.
  step "build the site" docs env NO_MKDOCS_2_WARNING=1 PATH="$PWD/$site_venv/bin:$PATH" \
    mkdocs build --config-file tools/site/mkdocs.yml
  step "check its links" docs-links python3 tools/site/check_links.py build/site
  unlock
  say "$(tail -n 1 build/log/docs-links.log)"
  say "the site is in build/site; to read it: python3 -m http.server --bind 127.0.0.1 --directory build/site"
}

# Sees to it that there is an environment with what makes and tests the site.
need_site_environment() { need_environment_of site "$site_venv" tools/site/requirements.txt "makes the site"; }
