import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseJson } from '../../../../src/config/source/json-tree.ts';
import type { ValueNode } from '../../../../src/config/source/node.ts';
import { SyntaxFault } from '../../../../src/config/source/syntax-error.ts';
import { parseTextProto } from '../../../../src/config/source/text-tree.ts';
import { parseYaml } from '../../../../src/config/source/yaml-tree.ts';
import { cpuTimeMs } from '../../../support/cpu-time.ts';

/** The tree as plain values: scalars as `form:text`, maps as lists of pairs so that repeated keys show. */
function plain(node: ValueNode | undefined): unknown {
  if (node === undefined) return undefined;
  if (node.kind === 'scalar') return `${node.form}:${node.text}`;
  if (node.kind === 'list') return node.items.map(plain);
  return node.entries.map(({ key, value }) => [key, plain(value)]);
}

function syntaxFault(parse: () => unknown): { message: string; offset: number } {
  try {
    parse();
  } catch (error) {
    assert.ok(error instanceof SyntaxFault, String(error));
    return { message: error.message, offset: error.offset };
  }
  return assert.fail('expected a syntax fault');
}

function asJson(node: ValueNode | undefined): unknown {
  if (node === undefined) return undefined;
  if (node.kind === 'list') return node.items.map(asJson);
  if (node.kind === 'map') return Object.fromEntries(node.entries.map(({ key, value }) => [key, asJson(value)]));
  if (node.form === 'null') return null;
  if (node.form === 'bool') return node.text === 'true';
  return node.form === 'number' ? Number(node.text) : node.text;
}

describe('YAML', () => {
  test('plain scalars mean what existing configurations expect of them', () => {
    const cases: Readonly<Record<string, string>> = {
      yes: 'bool:true',
      Off: 'bool:false',
      Y: 'bool:true',
      yEs: 'string:yEs',
      '~': 'null:null',
      NULL: 'null:null',
      '010': 'number:8',
      '08': 'string:08',
      '0x1F': 'number:31',
      '-0x10': 'number:-16',
      '+5': 'number:5',
      '-2147483648': 'number:-2147483648',
      '2147483648': 'string:2147483648',
      '0xFFFFFFFF': 'string:4294967295',
      '9223372036854775807': 'string:9223372036854775807',
      '18446744073709551615': 'string:18446744073709551615',
      '0.5': 'string:0.5',
      '1e3': 'string:1e3',
      '"yes"': 'string:yes',
      "'5'": 'string:5',
      '!!str 5': 'string:5',
      '! 5': 'string:5',
    };
    for (const [written, meant] of Object.entries(cases)) {
      assert.deepEqual(plain(parseYaml(`a: ${written}`)), [['a', meant]], written);
    }
  });

  test('keys are taken as written, even where a value would be a boolean or a number', () => {
    assert.deepEqual(plain(parseYaml('on: 1\n010: 2\n~: 3')), [
      ['on', 'number:1'],
      ['010', 'number:2'],
      ['~', 'number:3'],
    ]);
  });

  test('a key tagged !ignore is dropped, its anchors stay usable', () => {
    const text = '!ignore templates: &t { connect_timeout: 1s }\ncluster: *t';
    assert.deepEqual(plain(parseYaml(text)), [['cluster', [['connect_timeout', 'string:1s']]]]);
  });

  test('merge keys fill in what the map does not say itself', () => {
    const text = 'a: &a { x: 1, y: 1 }\nb: &b { y: 2, z: 2 }\nc: { <<: [*a, *b], x: 3 }';
    const merged = (plain(parseYaml(text)) as [string, unknown][])[2];
    assert.deepEqual(merged, [
      'c',
      [
        ['x', 'number:3'],
        ['y', 'number:1'],
        ['z', 'number:2'],
      ],
    ]);
    assert.match(syntaxFault(() => parseYaml('a: { <<: 5 }')).message, /<< takes a map/);
  });

  test('what cannot be read ends in one fault that says where', () => {
    const cases: readonly [string, RegExp, number][] = [
      ['a: 1\nb: 2\na: 3', /^duplicate key "a", first given in line 1$/, 10],
      [':\n:', /^duplicate key "", first given in line 1$/, 0],
      ['a: 1\n: 2\nb: 3\n: 4', /^duplicate key "", first given in line 1$/, 9],
      ['a: 1\n<<:', /^<< takes a map or a list of maps$/, 5],
      ['a: [1', /not valid YAML: unexpected end/, 5],
      ['a: *q', /alias \*q has no anchor before it/, 4],
      ['a: &x [*x]', /lies inside its own anchor/, 8],
      ['a: 1\n---\nb: 2', /more than one YAML document/, 9],
      ['? [a]\n: b', /a list cannot be a key/, 2],
      ['a:\n\t- b', /not valid YAML/, 3],
      ['[', /not valid YAML/, 1],
      ['['.repeat(5000), /nested deeper than 100 levels/, 99],
      ['\u0001\u0002\u0007', /not valid YAML/, 0],
    ];
    for (const [text, message, offset] of cases) {
      const fault = syntaxFault(() => parseYaml(text));
      assert.match(fault.message, message);
      assert.equal(fault.offset, offset, text.slice(0, 40));
    }
  });

  test('duplicate keys are found in maps of any size', () => {
    const keys = Array.from({ length: 50 }, (_, index) => `k${index}: 1\n`).join('');
    assert.match(syntaxFault(() => parseYaml(`${keys}k7: 2`)).message, /duplicate key "k7", first given in line 8/);
  });

  test('an alias bomb is refused at once, thousands of honest aliases are not', () => {
    let bomb = 'a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n';
    for (let level = 1; level < 20; level += 1) {
      bomb += `a${level}: &a${level} [${Array(10)
        .fill(`*a${level - 1}`)
        .join(', ')}]\n`;
    }
    const spent = cpuTimeMs(() => {
      assert.match(syntaxFault(() => parseYaml(bomb)).message, /aliases stand for more than 2000000 values/);
    });
    assert.ok(spent < 200, `${spent} ms`);
    const honest = `t: &t { a: 1, b: 2 }\nlist:\n${'- *t\n'.repeat(20_000)}`;
    const list = (plain(parseYaml(honest)) as [string, unknown[]][])[1]!;
    assert.equal(list[1].length, 20_000);
  });

  test('an empty document is no value', () => {
    for (const text of ['', '\n\n', '# only a comment\n', '---\n...\n']) {
      const root = parseYaml(text);
      assert.ok(root === undefined || plain(root) === 'null:null', JSON.stringify(text));
    }
  });
});

describe('JSON', () => {
  test('accepts what JSON.parse accepts and gives the same values', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(0, 2, '\t'), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        assert.deepEqual(JSON.stringify(asJson(parseJson(text))), JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  test('refuses what JSON.parse refuses', () => {
    const mutated = fc
      .tuple(fc.jsonValue({ maxDepth: 3 }), fc.nat(200), fc.constantFrom('', ',', '}', ']', '"', '\\', '0', 'e', '\n'))
      .map(([value, at, piece]) => {
        const text = JSON.stringify(value, null, 1);
        const cut = at % (text.length + 1);
        return text.slice(0, cut) + piece + text.slice(cut + 1);
      });
    fc.assert(
      fc.property(mutated, (text) => {
        const accepts = (parse: (text: string) => unknown) => {
          try {
            return parse(text) !== undefined;
          } catch (error) {
            // The one deliberate difference.
            return error instanceof SyntaxFault && error.message.startsWith('duplicate key') ? 'duplicate' : false;
          }
        };
        const ours = accepts(parseJson);
        if (ours !== 'duplicate') assert.equal(ours, accepts(JSON.parse), text);
      }),
    );
  });

  test('numbers keep every digit', () => {
    assert.deepEqual(plain(parseJson('[18446744073709551615, 1.10, -0, 1E400]')), [
      'number:18446744073709551615',
      'number:1.10',
      'number:-0',
      'number:1E400',
    ]);
  });

  test('what cannot be read ends in one fault that says where', () => {
    const cases: readonly [string, RegExp, number][] = [
      ['{"a": 1,}', /expected a key in double quotes, got "}"/, 8],
      ['{"a": 1', /expected "," or "}", got the end of the text/, 7],
      ['{"a": 1, "b": 2, "a": 3}', /duplicate key "a", first given in line 1/, 17],
      ["{'a': 1}", /expected a key in double quotes/, 1],
      ['{"a": 01}', /expected "," or "}"/, 7],
      ['{"a": yes}', /expected a value, got "y"/, 6],
      ['{"a": "x', /expected the end of a string/, 8],
      ['{"a": "\\x"}', /bad escape/, 7],
      ['{} {}', /expected the end of the text/, 3],
      ['['.repeat(200), /nested deeper than 100 levels/, 100],
    ];
    for (const [text, message, offset] of cases) {
      const fault = syntaxFault(() => parseJson(text));
      assert.match(fault.message, message);
      assert.equal(fault.offset, offset, text.slice(0, 40));
    }
  });
});

describe('text proto', () => {
  test('reads every way of writing a field', () => {
    const text = `
      # a comment
      name: "a" 'b'   # strings join
      node { id: "n" }; other < x: -1.5f >,
      list: [1, 0x10, 010, -0x2] list: 7
      messages: [{ a: 1 }, < b: 2 >]
      flag: true level: HIGH limit: -inf
      any { [type.googleapis.com/a.b-c.D] { x: 1 } }
    `;
    assert.deepEqual(plain(parseTextProto(text)), [
      ['name', 'string:ab'],
      ['node', [['id', 'string:n']]],
      ['other', [['x', 'number:-1.5']]],
      ['list', ['number:1', 'number:16', 'number:8', 'number:-2']],
      ['list', 'number:7'],
      ['messages', [[['a', 'number:1']], [['b', 'number:2']]]],
      ['flag', 'word:true'],
      ['level', 'word:HIGH'],
      ['limit', 'word:-inf'],
      ['any', [['[type.googleapis.com/a.b-c.D]', [['x', 'number:1']]]]],
    ]);
  });

  test('strings are bytes: escapes and characters alike', () => {
    const [, text] = (
      plain(parseTextProto('a: "\\n\\101\\x41\\u00e9\\U0001F600\\377 é\\""')) as [string, string][]
    )[0]!;
    const bytes = Buffer.from(text.slice('string:'.length), 'latin1');
    const expected = Buffer.concat([Buffer.from('\nAAé😀'), Buffer.from([0xff]), Buffer.from(' é"')]);
    assert.deepEqual(bytes, expected);
  });

  test('what cannot be read ends in one fault that says where', () => {
    const cases: readonly [string, RegExp, number][] = [
      ['a { b: 1', /expected a field name, got the end of the text/, 8],
      ['a: ', /expected a value, got the end of the text/, 3],
      ['a 5', /expected ":" or "{", got "5"/, 2],
      ['a: "x\n"', /string without an end/, 3],
      ['a: "\\q"', /bad escape/, 4],
      ['a: "\\ud800"', /no Unicode character/, 4],
      ['a: 12ab', /malformed number/, 3],
      ['a: 089', /malformed octal/, 3],
      ['a: @', /stray character "@"/, 3],
      ['a: [1 2]', /expected ","/, 6],
      ['a {'.repeat(300), /nested deeper than 100 levels/, 302],
    ];
    for (const [text, message, offset] of cases) {
      const fault = syntaxFault(() => parseTextProto(text));
      assert.match(fault.message, message);
      assert.equal(fault.offset, offset, text.slice(0, 40));
    }
  });
});

test('no parser throws anything but a syntax fault, whatever it is given', () => {
  const noise = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.string({ unit: fc.constantFrom(...'{}[]<>:,-"\'\\#&*!|>%@ \n\tab01') }),
  );
  fc.assert(
    fc.property(noise, fc.constantFrom(parseYaml, parseJson, parseTextProto), (text, parse) => {
      try {
        parse(text);
      } catch (error) {
        assert.ok(error instanceof SyntaxFault, String((error as Error).stack));
        assert.ok(error.offset >= 0);
      }
    }),
    { numRuns: 500 },
  );
});
