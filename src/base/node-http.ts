// What weir takes of Node's http module. An `import` of the module asks for the value of each of its exports, and some of
// them load Node's HTTP client only then: 60 ms of every thread's start for something that nobody uses here.

export const { createServer, STATUS_CODES } = process.getBuiltinModule('node:http');
