// The lockfile must install everywhere: no address of one registry, and the packages of every platform.

interface LockedPackage {
  readonly resolved?: string;
  /** A folder of the clone, which `resolved` names. */
  readonly link?: boolean;
  readonly version?: string;
  readonly integrity?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

interface Lockfile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

export function lockfileBreaches(text: string): string[] {
  const { packages } = JSON.parse(text) as Lockfile;
  return Object.entries(packages).flatMap(([location, entry]) => [
    ...(entry.resolved === undefined || entry.link
      ? []
      : [`package-lock.json: ${location} holds the address of a registry`]),
    ...missingOptional(packages, location, entry),
  ]);
}

/** npm leaves out what the registry in use does not offer; `npm ci` elsewhere then refuses the lockfile. */
function missingOptional(packages: Lockfile['packages'], location: string, entry: LockedPackage): string[] {
  return Object.keys(entry.optionalDependencies ?? {})
    .filter((name) => !packages[`node_modules/${name}`] && !packages[`${location}/node_modules/${name}`])
    .map((name) => `package-lock.json: ${name} is missing; run node scripts/complete-lockfile.mjs`);
}
