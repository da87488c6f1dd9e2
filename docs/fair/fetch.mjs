// Writes a draw at a server to draw.json, for verify.mjs: node fetch.mjs https://shop.example/api/v1/draws/42
import { writeFileSync } from 'node:fs'

const read = async (path) => {
  const answer = await fetch(process.argv[2] + path)
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return answer
}
const draw = await (await read('/proof')).json()
for (draw.list = []; draw.seal;) {
  const chunk = Buffer.from(await (await read('/list?chunk=' + draw.list.length)).arrayBuffer())
  if (!chunk.length) break
  draw.list.push(chunk.toString('base64'))
}
writeFileSync('draw.json', JSON.stringify(draw))
