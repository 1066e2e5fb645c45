# Finds the runtime and starts a compiled program of weir under it; bin/weir reads this with $root set to the folder of the
# package. POSIX shell. Packages are found as Node finds them: in the package's own node_modules or in one above it.
# Beside scripts/setup/runtime.mjs, which does the same for what runs under any Node.

RUNTIME_MAJOR=26
# Version of the interface between that Node and addons.
RUNTIME_ABI=147

fail() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  exit 1
}

# Sets $found to the folder of an installed package.
find_package() {
  above=$root
  while :; do
    found=$above/node_modules/$1
    [ -f "$found/package.json" ] && return 0
    [ -n "$above" ] || return 1
    above=${above%/*}
  done
}

# Sets $runtime, the Node that runs weir: the pinned one, else the one on PATH if it is new enough.
find_runtime() {
  system=$(uname -sm)
  case $system in
    'Linux x86_64') platform=linux-x64 ;;
    'Linux aarch64') platform=linux-arm64 ;;
    'Darwin arm64') platform=darwin-arm64 ;;
    'Darwin x86_64') platform=darwin-x64 ;;
    *) platform=$system ;;
  esac
  for name in "node-$platform" "node-bin-$platform"; do
    find_package "$name" || continue
    runtime=$found/bin/node
    runtime_facts=$found/package.json
    [ -x "$runtime" ] && return 0
  done
  runtime=$(command -v node) && version=$("$runtime" --version) || version=v0
  major=${version#v}
  [ "${major%%.*}" -ge "$RUNTIME_MAJOR" ] ||
    fail "weir runs under Node $RUNTIME_MAJOR or newer: put one on PATH, or install the package that it is pinned to (npm install node-$platform@$RUNTIME_MAJOR, where there is one)"
  runtime_facts=
}

# The package brings re2's addon for the platform that it was packed on. Elsewhere the package re2 does: after `npm install` its
# addon was built for the Node that ran npm, or not at all. A file beside it says which runtime has loaded it; looking is much
# quicker than asking the runtime.
provide_re2() {
  if [ -f "$root/build/addons/re2-$platform-$RUNTIME_ABI.node" ]; then
    [ -n "$runtime_facts" ] || [ "${major%%.*}" = "$RUNTIME_MAJOR" ] && return 0
  fi
  if find_package re2; then
    for stamp in "$found"/build/Release/.loads-in-*; do
      loader=${stamp##*.loads-in-}
      if [ -z "$runtime_facts" ]; then [ "v$loader" = "$version" ] && return 0
      else grep -qF "\"version\": \"$loader\"" "$runtime_facts" && return 0
      fi
    done
  fi
  "$runtime" "$root/scripts/setup/provide-re2.mjs" "${0##*/}"
}

# launch <program below dist/> <arguments>
launch() {
  program=$root/dist/$1
  shift
  [ -f "$program" ] || fail "$program is missing; in a clone, run \"npm run build\" once"
  # Stack traces name the sources; the maps are read when the first one is printed.
  set -- --disable-warning=ExperimentalWarning --enable-source-maps "$program" "$@"
  # Main is stopped for a shorter time at once (src/process/young-generation.ts).
  case "$program ${NODE_OPTIONS-}" in
    *semi-space*) ;;
    */src/main.js\ *) set -- --max-semi-space-size=8 "$@" ;;
  esac
  # Blocks the signal for good, and main unblocks it; it cannot do that elsewhere.
  case $platform in linux-*) set -- --disable-sigusr1 "$@" ;; esac
  # Compiled code kept from the last start saves a third of this one; where it cannot be kept, all is compiled anew.
  if [ -w "$root/build" ]; then
    : "${NODE_COMPILE_CACHE=$root/build/compile-cache}"
    export NODE_COMPILE_CACHE
  fi
  exec "$runtime" "$@"
}

find_runtime
