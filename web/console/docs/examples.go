package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	docpages "dropbell/views/pages/docs"
	"dropbell/web/api/pipeline"
)

// call is one request that examples in several languages send.
type call struct {
	method string
	// path is below /api/v1.
	path string
	// credential is the variable of the environment that holds it; "" = none.
	credential string
	headers    []header
	// idempotent calls send a new Idempotency-Key.
	idempotent bool
	kind, body string
	// file says that the body is the content of the file with the name in body.
	file bool
	// stream is an answer without end.
	stream bool
}

type header struct{ name, value string }

// jsonType is the content type of most bodies.
const jsonType = "application/json"

// callOf is the operation with the example of the document.
func callOf(op *huma.Operation) call {
	c := call{method: op.Method, path: strings.NewReplacer("{template_id}", "1", "{id}", "1", "{number}", "10", "{batch}", "1", "{user_id}", "1001", "{job_id}", "1").Replace(op.Path),
		idempotent: op.Method == http.MethodPost, stream: op.OperationID == "inbox-stream"}
	switch {
	case op.Tags[0] == pipeline.TagStaff, op.Tags[0] == pipeline.TagPayment:
		c.credential = "KEY"
	case len(op.Security) < 3:
		c.credential = "TOKEN"
	}
	if op.Method == http.MethodPatch {
		c.headers = append(c.headers, header{"If-Match", `"1"`})
	}
	if op.RequestBody == nil {
		return c
	}
	for _, p := range op.Parameters {
		if p.In == "query" && p.Required && p.Schema != nil {
			c.path += "?" + url.Values{p.Name: {fmt.Sprint(p.Schema.Examples...)}}.Encode()
		}
	}
	if png := op.RequestBody.Content["image/png"]; png != nil {
		c.kind, c.body, c.file = "image/png", "moon-cakes.png", true
	}
	var kinds []string
	for kind, media := range op.RequestBody.Content {
		if media.Example != nil {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) > 0 {
		c.kind = slices.Min(kinds)
		c.body = exampleText(op.RequestBody.Content[c.kind].Example)
	}
	return c
}

func exampleText(v any) string {
	if s, ok := v.(string); ok {
		return strings.TrimSpace(s)
	}
	b, _ := json.Marshal(v) // it is JSON already
	return string(b)
}

// examples are the call in every language of the pages.
func examples(c call) []docpages.Example {
	return []docpages.Example{{Language: "curl", Text: c.curl()}, {Language: "JavaScript", Text: c.javaScript()},
		{Language: "Python", Text: c.python()}, {Language: "Go", Text: c.goProgram()}}
}

// curl returns a command that can be pasted into a shell.
func (c call) curl() string {
	first := "curl"
	if c.method != http.MethodGet {
		first += " -X " + c.method
	}
	if c.stream {
		first += " -N"
	}
	lines := []string{first + ` "$DROPBELL/api/v1` + c.path + `"`}
	if c.credential != "" {
		lines = append(lines, `-H "Authorization: Bearer $`+c.credential+`"`)
	}
	for _, h := range c.headers {
		lines = append(lines, "-H '"+h.name+": "+h.value+"'")
	}
	if c.idempotent {
		lines = append(lines, `-H "Idempotency-Key: $(uuidgen)"`)
	}
	switch {
	case c.file:
		lines = append(lines, "-H 'Content-Type: "+c.kind+"'", "--data-binary @"+c.body)
	case c.body != "":
		lines = append(lines, "-H 'Content-Type: "+c.kind+"'", "--data-binary '"+c.body+"'")
	}
	return strings.Join(lines, " \\\n  ")
}

// javaScript returns a module for Node.js; browsers have the same fetch.
func (c call) javaScript() string {
	var b strings.Builder
	fmt.Fprintf(&b, "const answer = await fetch(process.env.DROPBELL + %s, {\n", quoted("/api/v1"+c.path))
	fmt.Fprintf(&b, "  method: %s,\n", quoted(c.method))
	var headers []string
	if c.credential != "" {
		headers = append(headers, `Authorization: "Bearer " + process.env.`+c.credential)
	}
	for _, h := range c.headers {
		headers = append(headers, quoted(h.name)+": "+quoted(h.value))
	}
	if c.idempotent {
		headers = append(headers, `"Idempotency-Key": crypto.randomUUID()`)
	}
	if c.body != "" {
		headers = append(headers, `"Content-Type": `+quoted(c.kind))
	}
	if len(headers) > 0 {
		b.WriteString("  headers: {\n")
		for _, h := range headers {
			b.WriteString("    " + h + ",\n")
		}
		b.WriteString("  },\n")
	}
	switch {
	case c.file:
		b.WriteString("  body: await (await import(\"node:fs/promises\")).readFile(" + quoted(c.body) + "),\n")
	case c.kind == jsonType:
		b.WriteString("  body: JSON.stringify(" + indented(c.body, "  ") + "),\n")
	case c.body != "":
		b.WriteString("  body: " + quoted(c.body) + ",\n")
	}
	b.WriteString("});\n")
	if c.stream {
		b.WriteString("for await (const part of answer.body) process.stdout.write(part);")
	} else {
		b.WriteString("console.log(answer.status, await answer.text());")
	}
	return b.String()
}

// python returns a program that uses requests.
func (c call) python() string {
	imports := "import os\n"
	if c.idempotent {
		imports += "import uuid\n"
	}
	var b strings.Builder
	b.WriteString(imports + "import requests\n\nanswer = requests." + strings.ToLower(c.method) + "(\n")
	fmt.Fprintf(&b, "    os.environ[\"DROPBELL\"] + %s,\n", quoted("/api/v1"+c.path))
	var headers []string
	if c.credential != "" {
		headers = append(headers, `"Authorization": "Bearer " + os.environ["`+c.credential+`"]`)
	}
	for _, h := range c.headers {
		headers = append(headers, quoted(h.name)+": "+quoted(h.value))
	}
	if c.idempotent {
		headers = append(headers, `"Idempotency-Key": str(uuid.uuid4())`)
	}
	if c.body != "" && c.kind != jsonType {
		headers = append(headers, `"Content-Type": `+quoted(c.kind))
	}
	if len(headers) > 0 {
		b.WriteString("    headers={\n")
		for _, h := range headers {
			b.WriteString("        " + h + ",\n")
		}
		b.WriteString("    },\n")
	}
	switch {
	case c.file:
		b.WriteString("    data=open(" + quoted(c.body) + ", \"rb\"),\n")
	case c.kind == jsonType:
		b.WriteString("    json=" + pythonic(indented(c.body, "    ")) + ",\n")
	case c.body != "":
		b.WriteString("    data=" + quoted(c.body) + ".encode(),\n")
	}
	if c.stream {
		b.WriteString("    stream=True,\n)\nfor line in answer.iter_lines():\n    print(line.decode())")
	} else {
		b.WriteString(")\nprint(answer.status_code, answer.text)")
	}
	return b.String()
}

// goProgram returns a program, formatted as gofmt does.
func (c call) goProgram() string {
	imports := []string{"io", "log", "net/http", "os"}
	body := "nil"
	if c.file {
		body = "file"
	} else if c.body != "" {
		imports = append(imports, "strings")
		body = "strings.NewReader(" + raw(c.body) + ")"
	}
	if c.idempotent {
		imports = append([]string{"crypto/rand"}, imports...)
	}
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n")
	for _, name := range imports {
		b.WriteString("\t" + strconv.Quote(name) + "\n")
	}
	b.WriteString(")\n\nfunc main() {\n")
	if c.file {
		fmt.Fprintf(&b, "\tfile, err := os.Open(%q)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n", c.body)
	}
	fmt.Fprintf(&b, "\trequest, err := http.NewRequest(%q, os.Getenv(\"DROPBELL\")+%q, %s)\n", c.method, "/api/v1"+c.path, body)
	b.WriteString("\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n")
	if c.credential != "" {
		fmt.Fprintf(&b, "\trequest.Header.Set(\"Authorization\", \"Bearer \"+os.Getenv(%q))\n", c.credential)
	}
	for _, h := range c.headers {
		fmt.Fprintf(&b, "\trequest.Header.Set(%q, %s)\n", h.name, raw(h.value))
	}
	if c.idempotent {
		b.WriteString("\trequest.Header.Set(\"Idempotency-Key\", rand.Text())\n")
	}
	if c.body != "" {
		fmt.Fprintf(&b, "\trequest.Header.Set(\"Content-Type\", %q)\n", c.kind)
	}
	b.WriteString("\tanswer, err := http.DefaultClient.Do(request)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n" +
		"\tdefer answer.Body.Close()\n\tlog.Print(answer.Status)\n\tif _, err := io.Copy(os.Stdout, answer.Body); err != nil {\n\t\tlog.Fatal(err)\n\t}\n}")
	return b.String()
}

// raw quotes for Go, without escapes where that is possible.
func raw(s string) string {
	if strconv.CanBackquote(s) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}

// quoted is a string in JavaScript, Python and JSON.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has a JSON form
	return strings.TrimSpace(b.String())
}

// indented is JSON in lines, of which all but the first begin with prefix.
func indented(text, prefix string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), prefix, "  "); err != nil {
		return text
	}
	return b.String()
}

// pythonic turns JSON into the same literal of Python.
func pythonic(text string) string {
	words := strings.NewReplacer("true", "True", "false", "False", "null", "None")
	var b strings.Builder
	for text != "" {
		begin := strings.IndexByte(text, '"')
		if begin < 0 {
			b.WriteString(words.Replace(text))
			break
		}
		end := begin + 1
		for end < len(text)-1 && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		b.WriteString(words.Replace(text[:begin]) + text[begin:end+1])
		text = text[end+1:]
	}
	return b.String()
}
