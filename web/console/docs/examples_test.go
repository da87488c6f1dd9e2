package docs

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/build"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"dropbell/web/api"
	"dropbell/web/api/pipeline"
)

// described is the API as its document has it.
func described() reference {
	return reference{api.New(api.Deps{Deps: pipeline.Deps{Now: time.Now}}).Pipeline}
}

// sources returns the examples of all pages in a language, by the name of the example.
func sources(t *testing.T, language string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, g := range described().page().Groups {
		for _, op := range g.Operations {
			for _, e := range op.Examples {
				if e.Language == language {
					found[op.ID] = e.Text
				}
			}
		}
	}
	for _, e := range webhooks().Examples {
		if e.Language == language {
			found["webhooks"] = e.Text
		}
	}
	if len(found) < 60 {
		t.Fatalf("%d examples in %s", len(found), language)
	}
	return found
}

// tool returns a program's path, or skips the test; where CI is set it fails.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// The examples in Go are formatted and have no error that the compiler finds.
func TestGoExamplesCompile(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	build.Default.CgoEnabled = false // the source importer runs no cgo
	imports := importer.ForCompiler(fset, "source", nil)
	for of, text := range sources(t, "Go") {
		if formatted, err := format.Source([]byte(text)); err != nil || string(formatted) != text+"\n" {
			t.Errorf("%s is not formatted (%v):\n%s", of, err, text)
			continue
		}
		file, err := parser.ParseFile(fset, of+".go", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (&types.Config{Importer: imports}).Check(of, fset, []*ast.File{file}, nil); err != nil {
			t.Errorf("%s: %v\n%s", of, err, text)
		}
	}
}

// run gives a program the texts as JSON.
func run(t *testing.T, texts map[string]string, name string, args ...string) {
	t.Helper()
	input, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), tool(t, name), args...)
	cmd.Stdin = bytes.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

func TestJavaScriptExamplesParse(t *testing.T) {
	t.Parallel()
	texts := sources(t, "JavaScript")
	module := filepath.Join(t.TempDir(), "webhooks.mjs")
	if err := os.WriteFile(module, []byte(texts["webhooks"]), 0o600); err != nil {
		t.Fatal(err)
	}
	delete(texts, "webhooks") // a module, others are statements with await
	run(t, texts, "node", "-e", `const of = JSON.parse(require("fs").readFileSync(0));
		const Body = (async () => {}).constructor;
		for (const [name, text] of Object.entries(of)) try { new Body(text) } catch (e) { console.log(name, e.message, text); process.exitCode = 1 }`)
	headers, err := json.Marshal(map[string]string{"webhook-id": sampleID, "webhook-timestamp": sampleTimestamp, "webhook-signature": sampleSignature})
	if err != nil {
		t.Fatal(err)
	}
	// The printed verifier accepts the printed call at its time, and no other body.
	run(t, nil, "node", "--input-type=module", "-e", `import { verify } from `+quoted("file://"+module)+`;
		Date.now = () => `+sampleTimestamp+`000;
		const ok = (body) => verify(`+string(headers)+`, body, `+quoted(sampleSecret)+`);
		if (!ok(`+quoted(sampleBody)+`) || ok(`+quoted(sampleBody+" ")+`)) process.exitCode = 1;`)
}

func TestPythonExamplesParse(t *testing.T) {
	t.Parallel()
	texts := sources(t, "Python")
	run(t, texts, "python3", "-c", `import json, sys
for name, text in json.load(sys.stdin).items():
    compile(text, name, "exec")`)
	run(t, map[string]string{"code": texts["webhooks"], "body": sampleBody, "secret": sampleSecret, "id": sampleID, "at": sampleTimestamp, "signature": sampleSignature},
		"python3", "-c", `import json, sys, time
given = json.load(sys.stdin)
time.time = lambda: int(given["at"])
exec(given["code"], globals())
headers = {"webhook-id": given["id"], "webhook-timestamp": given["at"], "webhook-signature": given["signature"]}
assert verify(headers, given["body"].encode(), given["secret"])
assert not verify(headers, given["body"].encode() + b" ", given["secret"])`)
}

func TestShellExamplesParse(t *testing.T) {
	t.Parallel()
	var all []string
	for _, g := range described().page().Groups {
		for _, op := range g.Operations {
			all = append(all, op.Examples[0].Text)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-n")
	cmd.Stdin = strings.NewReader(strings.Join(all, "\n\n"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The body of every example conforms to the schema of its operation.
func TestBodiesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	p, checked := described(), 0
	for _, op := range p.Operations() {
		c := callOf(op)
		if op.RequestBody != nil && op.RequestBody.Required && c.body == "" {
			t.Errorf("%s has no example of its body", op.OperationID)
		}
		if c.kind != jsonType {
			continue
		}
		var body any
		if err := json.Unmarshal([]byte(c.body), &body); err != nil {
			t.Errorf("%s: %v: %s", op.OperationID, err, c.body)
			continue
		}
		res := &huma.ValidateResult{}
		huma.Validate(p.Schemas(), op.RequestBody.Content[c.kind].Schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, body, res)
		for _, err := range res.Errors {
			t.Errorf("%s: %v: %s", op.OperationID, err, c.body)
		}
		checked++
	}
	if checked < 25 {
		t.Errorf("%d bodies were checked", checked)
	}
}

func TestPythonic(t *testing.T) {
	for text, want := range map[string]string{`{"a": true, "b": "true", "c": [null, false]}`: `{"a": True, "b": "true", "c": [None, False]}`,
		`{"x\"true": true}`: `{"x\"true": True}`, `true`: `True`, `{"a": "null"}`: `{"a": "null"}`} {
		if got := pythonic(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
