// Holds modules against the rules. Each breach is one line that names the place, the rule and what to do instead.

import { type ModuleImport, type SourceModule, unitOf } from './modules.ts';
import {
  BOUNDARY_RULES,
  BOUNDED_PLACES,
  IMPORT_RULES,
  MAX_TYPE_KNOT,
  OPEN_UNITS,
  OWNER_RULES,
  SIDE_DOORS,
  UNBOUNDED_PLACES,
} from './rules.ts';

type Modules = ReadonlyMap<string, SourceModule>;

export function importBreaches(modules: Modules): string[] {
  return [...modules.values()].flatMap((module) => {
    const rule = IMPORT_RULES[module.unit];
    if (!rule) return [`${module.path}: ${module.unit} has no row in the import table`];
    return module.imports.flatMap(({ target, typesOnly, line }) => {
      const unit = unitOf(target);
      const place = `${module.path}:${line}`;
      if (unit === module.unit) {
        return isIndex(target) && module.path.startsWith(`${folderOf(target)}/`)
          ? [`${place}: a file does not import the index.ts of a folder that it lies in`]
          : [];
      }
      if (rule.uses.includes(unit) || (typesOnly && rule.namesTypesOf?.includes(unit))) return [];
      const kind = rule.namesTypesOf?.includes(unit) ? ' but for its types' : '';
      return [`${place}: ${module.unit} (${rule.why}) may not import ${unit}${kind}: ${target}`];
    });
  });
}

/** Outside of a folder that has an index.ts, only that file is imported. */
export function frontDoorBreaches(modules: Modules): string[] {
  return [...modules.values()].flatMap((module) =>
    module.imports.flatMap(({ target, line }) => {
      const unit = unitOf(target);
      const door = `src/${unit}/index.ts`;
      if (unit === module.unit || OPEN_UNITS.includes(unit) || target === door || SIDE_DOORS.includes(target))
        return [];
      return [`${module.path}:${line}: import ${door} instead of ${target}`];
    }),
  );
}

export function ownerBreaches(modules: Modules): string[] {
  return [...modules.values()].flatMap((module) => {
    const place = module.path.replace(/^src\//, '');
    return OWNER_RULES.filter(({ owners }) => !owners.some((owner) => owns(owner, place))).flatMap(
      ({ name, pattern, instead }) =>
        module.code
          .split('\n')
          .flatMap((line, index) =>
            pattern.test(line) ? [`${module.path}:${index + 1}: ${name} is not to be used here; ${instead}`] : [],
          ),
    );
  });
}

/** In folders of main: what begins a turn of the event loop without a boundary for its faults. */
export function boundaryBreaches(modules: Modules): string[] {
  const isIn = (places: readonly string[], { path }: SourceModule): boolean =>
    places.some((place) => path.startsWith(`src/${place}`));
  const bounded = [...modules.values()].filter(
    (module) => isIn(BOUNDED_PLACES, module) && !isIn(UNBOUNDED_PLACES, module),
  );
  return bounded.flatMap(({ path, code }) =>
    BOUNDARY_RULES.flatMap(({ name, pattern, instead }) =>
      [...code.matchAll(pattern)].map(({ index }) => {
        const line = code.slice(0, index).split('\n').length;
        return `${path}:${line}: ${name} reaches the process of whoever embeds the proxy; ${instead}`;
      }),
    ),
  );
}

function owns(owner: string, place: string): boolean {
  return owner.endsWith('/') ? place.startsWith(owner) : place === owner;
}

export function missingFileBreaches(modules: Modules): string[] {
  return [...modules.values()].flatMap((module) =>
    module.imports
      .filter(({ target }) => target.endsWith('.ts') && !target.endsWith('.d.ts') && !modules.has(target))
      .map(({ target, line }) => `${module.path}:${line}: ${target} does not exist`),
  );
}

/**
 * Modules that import one another: none of them can be read alone. A knot of imports that run is always a breach; one
 * that only types close is none while it stays small, because an owner and what it owns may name each other.
 */
export function cycleBreaches(modules: Modules): string[] {
  const running = knots(modules, ({ typesOnly }) => !typesOnly);
  const large = knots(modules, () => true).filter((knot) => knot.length > MAX_TYPE_KNOT);
  return [
    ...running.map((knot) => `import cycle: ${knot.join(', ')}`),
    ...large.map((knot) => `more than ${MAX_TYPE_KNOT} modules name one another's types: ${knot.join(', ')}`),
  ];
}

/** Strongly connected components of more than one module, by Tarjan's algorithm (SIAM J. Comput. 1972). */
function knots(modules: Modules, follows: (link: ModuleImport) => boolean): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (file: string): void => {
    const index = order.size;
    order.set(file, index);
    lowest.set(file, index);
    stack.push(file);
    for (const { target } of modules.get(file)!.imports.filter(follows)) {
      if (!modules.has(target)) continue;
      if (!order.has(target)) visit(target);
      if (stack.includes(target)) lowest.set(file, Math.min(lowest.get(file)!, lowest.get(target)!));
    }
    if (lowest.get(file) === index) found.push(stack.splice(stack.indexOf(file)).sort());
  };
  for (const file of modules.keys()) if (!order.has(file)) visit(file);
  return found.filter((knot) => knot.length > 1);
}

function isIndex(file: string): boolean {
  return file.endsWith('/index.ts');
}

function folderOf(file: string): string {
  return file.slice(0, file.lastIndexOf('/'));
}
