// Servers outside PML: files, git, clock, everything.

export const SERVERS = [
  {
    id: 'first-lines',
    first: ['read the first 3 lines of access/front.log', { count: 3, path: 'access/front.log' }],
    code: ({ count, path }) => `const { content } = await mcp.files.read_text_file({ path: "${path}", head: ${count} });
return content.trim().split("\\n");`,
    seconds: [
      ['close', 'read the first 2 lines of access/api.log', { count: 2, path: 'access/api.log' }],
      ['medium', 'show me the first 4 lines of poems/snow.txt', { count: 4, path: 'poems/snow.txt' }],
      ['medium fr', 'lis les 2 premières lignes de minutes/board.md', { count: 2, path: 'minutes/board.md' }],
    ],
    distractors: [
      ['contradiction', 'read all but the first 2 lines of access/api.log'],
      ['operation', 'delete the first 2 lines of access/api.log'],
    ],
  },
  {
    id: 'file-bytes',
    first: ['how many bytes has the file shots/paris/p2.jpg', { path: 'shots/paris/p2.jpg' }],
    code: ({ path }) => `const info = await mcp.files.get_file_info({ path: "${path}" });
return Number(/size: (\\d+)/.exec(info.content)[1]);`,
    seconds: [
      ['close', 'how many bytes has the file shots/oslo/o3.raw', { path: 'shots/oslo/o3.raw' }],
      ['medium', 'size of shots/oslo/o2.png in bytes', { path: 'shots/oslo/o2.png' }],
      ['medium fr', "combien d'octets a le fichier shots/paris/p3.raw", { path: 'shots/paris/p3.raw' }],
    ],
    distractors: [
      ['operation', 'how many pixels has the file shots/oslo/o2.png'],
      ['operation', 'compress the file shots/oslo/o2.png to 50 bytes'],
    ],
  },
  {
    id: 'files-with-ending',
    first: ['which raw files are in the folder shots/oslo', { ending: 'raw', folder: 'shots/oslo' }],
    code: ({ ending, folder }) => `const { content } = await mcp.files.search_files({ path: "${folder}", pattern: "*.${ending}" });
return content.split("\\n").map((line) => line.split("/").pop()).sort();`,
    seconds: [
      ['close', 'which jpg files are in the folder shots/paris', { ending: 'jpg', folder: 'shots/paris' }],
      ['medium', 'list the txt files in the folder recipes', { ending: 'txt', folder: 'recipes' }, { note: 'bare folder name' }],
      ['medium fr', 'quels fichiers log sont dans le dossier trash', { ending: 'log', folder: 'trash' }, { note: 'bare folder name' }],
    ],
    distractors: [
      ['contradiction', 'which files in the folder shots/paris are not jpg'],
      ['operation', 'convert the raw files in the folder shots/paris to jpg'],
    ],
  },
  {
    id: 'count-files',
    first: ['how many files are in the folder lab', { folder: 'lab' }],
    code: ({ folder }) => `const listing = await mcp.files.list_directory({ path: "${folder}" });
return listing.content.split("\\n").filter((line) => line.startsWith("[FILE]")).length;`,
    seconds: [
      ['close', 'how many files are in the folder wiki', { folder: 'wiki' }, { note: 'bare folder name' }],
      ['medium', 'number of files in the folder shots/oslo', { folder: 'shots/oslo' }],
      ['medium fr', 'combien de fichiers y a-t-il dans le dossier queue', { folder: 'queue' }, { note: 'bare folder name' }],
    ],
    distractors: [
      ['constraint', 'how many files are in the folder wiki that are older than a day'],
      ['operation', 'how many folders are in the folder shots'],
    ],
    again: [['how many files are in the folder menus', { folder: 'menus' }]],
  },
  {
    id: 'read-together',
    first: ['read lab/run1.txt and lab/run3.txt together', { one: 'lab/run1.txt', other: 'lab/run3.txt' }],
    code: ({ one, other }) => `const { content } = await mcp.files.read_multiple_files({ paths: ["${one}", "${other}"] });
return content;`,
    seconds: [
      ['close', 'read queue/monday.txt and queue/sunday.txt together', { one: 'queue/monday.txt', other: 'queue/sunday.txt' }],
      ['medium fr', 'lis queue/tuesday.txt et queue/sunday.txt ensemble', { one: 'queue/tuesday.txt', other: 'queue/sunday.txt' }],
    ],
    distractors: [
      ['operation', 'compare queue/monday.txt and queue/sunday.txt'],
      ['missing', 'read queue/monday.txt and the others together'],
    ],
  },
  {
    id: 'edit-text',
    first: ['in queue/monday.txt change "order toner" to "order ink"', { path: 'queue/monday.txt', old: 'order toner', new: 'order ink' }],
    code: (v) => `await mcp.files.edit_file({ path: "${v.path}", edits: [{ oldText: "${v.old}", newText: "${v.new}" }] });
return "edited";`,
    seconds: [
      ['close', 'in queue/tuesday.txt change "test the alarm" to "mute the alarm"', { path: 'queue/tuesday.txt', old: 'test the alarm', new: 'mute the alarm' }],
      ['medium', 'change "sleep" to "sleep late" in queue/sunday.txt', { path: 'queue/sunday.txt', old: 'sleep', new: 'sleep late' }, { note: 'order of values changed' }],
      ['medium fr', 'dans poems/snow.txt remplace "noon" par "evening"', { path: 'poems/snow.txt', old: 'noon', new: 'evening' }],
    ],
    distractors: [
      ['missing', 'in queue/tuesday.txt change "test the alarm"'],
      ['contradiction', 'in queue/tuesday.txt do not change "test the alarm" to "mute the alarm"'],
    ],
  },
  {
    id: 'new-file',
    first: ['create scratch/hello.txt with the text "good morning"', { path: 'scratch/hello.txt', text: 'good morning' }],
    code: ({ path, text }) => `await mcp.files.write_file({ path: "${path}", content: "${text}" });
return "${path}";`,
    seconds: [
      ['close', 'create scratch/bye.txt with the text "good night"', { path: 'scratch/bye.txt', text: 'good night' }],
      ['medium', 'make a file scratch/todo.txt that says "buy rope"', { path: 'scratch/todo.txt', text: 'buy rope' }],
      ['medium fr', 'crée scratch/salut.txt avec le texte "bonne route"', { path: 'scratch/salut.txt', text: 'bonne route' }],
    ],
    distractors: [
      ['missing', 'create scratch/bye.txt'],
      ['constraint', 'create scratch/bye.txt with the text "good night" unless it exists'],
    ],
  },
  {
    id: 'commit-authors',
    first: ['who committed to repos/lighthouse', { repo: 'repos/lighthouse' }],
    code: ({ repo }) => `const log = await mcp.git.git_log({ repo_path: "${repo}", max_count: 100 });
return [...new Set([...log.matchAll(/^Author: (.*)$/gm)].map((m) => m[1]))].sort();`,
    seconds: [
      ['close', 'who committed to repos/tide', { repo: 'repos/tide' }],
      ['medium', 'names of everybody who committed to repos/tide', { repo: 'repos/tide' }],
      ['medium fr', 'qui a fait des commits dans repos/tide', { repo: 'repos/tide' }],
    ],
    distractors: [
      ['operation', 'who committed the most to repos/tide'],
      ['contradiction', 'who never committed to repos/tide'],
    ],
  },
  {
    id: 'commits-by',
    first: ['how many commits did Karl make in repos/lighthouse', { person: 'Karl', repo: 'repos/lighthouse' }],
    code: ({ person, repo }) => `const log = await mcp.git.git_log({ repo_path: "${repo}", max_count: 100 });
return log.split("\\n").filter((line) => line === "Author: ${person}").length;`,
    seconds: [
      ['close', 'how many commits did Tomas make in repos/tide', { person: 'Tomas', repo: 'repos/tide' }],
      ['medium', 'number of commits by Ines in repos/lighthouse', { person: 'Ines' }],
      ['medium fr', 'combien de commits Nadia a-t-elle faits dans repos/lighthouse', { person: 'Nadia' }],
    ],
    distractors: [
      ['operation', 'how many lines did Tomas change in repos/tide'],
      ['constraint', 'how many commits did Karl make in repos/lighthouse since January'],
    ],
  },
  {
    id: 'has-branch',
    first: ['does repos/tide have a branch spring', { repo: 'repos/tide', branch: 'spring' }],
    code: ({ repo, branch }) => `const out = await mcp.git.git_branch({ repo_path: "${repo}", branch_type: "local" });
return out.split("\\n").some((line) => line.replace("*", "").trim() === "${branch}");`,
    seconds: [
      ['close', 'does repos/lighthouse have a branch winter', { repo: 'repos/lighthouse', branch: 'winter' }],
      ['medium', 'is there a branch summer in repos/tide', { branch: 'summer' }, { note: 'order of values changed' }],
      ['medium fr', 'est-ce que repos/lighthouse a une branche beacon', { repo: 'repos/lighthouse', branch: 'beacon' }],
    ],
    distractors: [
      ['operation', 'does repos/lighthouse have a tag winter'],
      ['operation', 'is the branch winter of repos/lighthouse merged'],
    ],
  },
  {
    id: 'create-branch',
    first: ['create the branch storm in repos/tide', { branch: 'storm', repo: 'repos/tide' }],
    code: ({ branch, repo }) => `await mcp.git.git_create_branch({ repo_path: "${repo}", branch_name: "${branch}" });
return "created";`,
    seconds: [
      ['close', 'create the branch harvest in repos/lighthouse', { branch: 'harvest', repo: 'repos/lighthouse' }],
      ['medium', 'make a branch equinox in repos/tide', { branch: 'equinox' }],
      ['medium fr', 'crée la branche automne dans repos/lighthouse', { branch: 'automne', repo: 'repos/lighthouse' }],
    ],
    distractors: [
      ['contradiction', 'delete the branch winter in repos/lighthouse'],
      ['constraint', 'create the branch harvest in repos/lighthouse from the commit before the last'],
    ],
  },
  {
    id: 'last-commit-files',
    first: ['which files did the last commit of repos/lighthouse touch', { repo: 'repos/lighthouse' }],
    code: ({ repo }) => `const shown = await mcp.git.git_show({ repo_path: "${repo}", revision: "HEAD" });
return [...shown.matchAll(/^\\+\\+\\+ b\\/(.*)$/gm)].map((m) => m[1]);`,
    seconds: [
      ['close', 'which files did the last commit of repos/tide touch', { repo: 'repos/tide' }],
      ['medium fr', 'quels fichiers le dernier commit de repos/tide a-t-il touchés', { repo: 'repos/tide' }],
    ],
    distractors: [
      ['contradiction', 'which files did the first commit of repos/tide touch'],
      ['operation', 'undo the last commit of repos/tide'],
    ],
  },
  {
    id: 'clock-in',
    first: ['when it is 16:30 in Asia/Dubai, what time is it in Asia/Tokyo', { time: '16:30', from: 'Asia/Dubai', to: 'Asia/Tokyo' }],
    code: ({ time, from, to }) => `const answer = await mcp.clock.convert_time({ source_timezone: "${from}", time: "${time}", target_timezone: "${to}" });
return answer.target.datetime.slice(11, 16);`,
    seconds: [
      ['close', 'when it is 08:00 in Asia/Tokyo, what time is it in Asia/Kolkata', { time: '08:00', from: 'Asia/Tokyo', to: 'Asia/Kolkata' }],
      ['medium', 'what time is it in Asia/Dubai when it is 21:45 in Asia/Kolkata', { time: '21:45', from: 'Asia/Kolkata', to: 'Asia/Dubai' }, { note: 'order of values changed' }],
    ],
    distractors: [
      ['missing', 'what time is it in Asia/Kolkata'],
      ['operation', 'when does the sun rise in Asia/Tokyo, in the time of Asia/Kolkata'],
    ],
  },
  {
    id: 'zone-difference',
    first: ['time difference from Asia/Kolkata to Asia/Tokyo', { from: 'Asia/Kolkata', to: 'Asia/Tokyo' }],
    code: ({ from, to }) => `const r = await mcp.clock.convert_time({ source_timezone: "${from}", time: "12:00", target_timezone: "${to}" });
return r.time_difference;`,
    seconds: [
      ['close', 'time difference from Asia/Tokyo to Asia/Dubai', { from: 'Asia/Tokyo', to: 'Asia/Dubai' }],
      ['medium', 'what is the time difference to Asia/Kolkata from Asia/Dubai', { from: 'Asia/Dubai', to: 'Asia/Kolkata' }, { note: 'order of values changed' }],
      ['medium fr', 'décalage horaire de Asia/Dubai à Asia/Tokyo', { from: 'Asia/Dubai' }],
    ],
    distractors: [
      ['operation', 'flight time from Asia/Tokyo to Asia/Dubai'],
      ['missing', 'time difference to Asia/Dubai'],
    ],
  },
  {
    id: 'sum-service',
    first: ['add 17 and 25 with the sum tool', { a: 17, b: 25 }],
    code: ({ a, b }) => `const text = await mcp.everything.get_sum({ a: ${a}, b: ${b} });
return Number(text.match(/is (-?[\\d.]+)\\./)[1]);`,
    seconds: [
      ['close', 'add 3 and 99 with the sum tool', { a: 3, b: 99 }],
      ['medium', 'what do 40 and 8 add up to with the sum tool', { a: 40, b: 8 }],
      ['medium fr', "additionne 12 et 30 avec l'outil sum", { a: 12, b: 30 }],
    ],
    distractors: [
      ['operation', 'multiply 3 and 99 with the sum tool'],
      ['constraint', 'add 3 and 99 and 7 with the sum tool'],
    ],
  },
  {
    id: 'echo',
    first: ['echo "hello crew"', { message: 'hello crew' }],
    args: { message: 'message' },
    code: () => `const reply = await mcp.everything.echo({ message: args.message });
return reply.replace("Echo: ", "");`,
    seconds: [
      ['close', 'echo "all aboard"', { message: 'all aboard' }],
      ['medium', 'let the server echo "anchors up"', { message: 'anchors up' }],
      ['close', 'echo the message', { message: 'land ahead' }, { context: { message: 'land ahead' } }],
    ],
    distractors: [
      ['operation', 'echo "all aboard" three times'],
      ['contradiction', 'do not echo "all aboard"'],
    ],
  },
  {
    id: 'more-humid',
    first: ['is it more humid in "Chicago" than in "New York"', { here: 'Chicago', there: 'New York' }],
    code: ({ here, there }) => `const a = await mcp.everything.get_structured_content({ location: "${here}" });
const b = await mcp.everything.get_structured_content({ location: "${there}" });
return a.humidity > b.humidity;`,
    seconds: [
      ['close', 'is it more humid in "Los Angeles" than in "Chicago"', { here: 'Los Angeles', there: 'Chicago' }],
      ['medium', 'is "New York" more humid than "Los Angeles"', { here: 'New York', there: 'Los Angeles' }],
    ],
    distractors: [
      ['contradiction', 'is it less humid in "Los Angeles" than in "Chicago"'],
      ['operation', 'is it warmer in "Los Angeles" than in "Chicago"'],
    ],
  },
];
