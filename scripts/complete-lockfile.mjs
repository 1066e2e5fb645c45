// Adds the platform-bound optional packages that npm left out of package-lock.json because the registry
// in use did not offer them. `npm ci` refuses a lockfile without them, although it never installs the
// ones of other platforms. Run it after adding or updating a dependency (see CONTRIBUTING.md).

import { readFileSync, writeFileSync } from 'node:fs';

const file = new URL('../package-lock.json', import.meta.url);
const lock = JSON.parse(readFileSync(file, 'utf8'));

const PLATFORM =
  /(aix|android|darwin|freebsd|linux|netbsd|openbsd|openharmony|sunos|win32)-(arm|arm64|ia32|loong64|mips64el|ppc64|riscv64|s390x|x64)(?:-(musl|gnu))?$/;

/** "…/cli-linux-x64-musl" → the os, cpu and libc that npm compares with the machine's own. */
function platformOf(name) {
  const [, os, cpu, libc] = PLATFORM.exec(name) ?? [];
  if (!os) throw new Error(`${name}: no platform in its name; add it to the lockfile by hand`);
  return { cpu: [cpu], os: [os], ...(libc ? { libc: [libc === 'gnu' ? 'glibc' : libc] } : {}) };
}

let added = 0;
for (const [location, entry] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    if (lock.packages[key] || lock.packages[`${location}/${key}`]) continue;
    lock.packages[key] = {
      version,
      ...platformOf(name),
      ...(entry.dev ? { dev: true } : {}),
      license: entry.license,
      optional: true,
    };
    added += 1;
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`${added} packages added to package-lock.json`);
