// Command sdk generates the generated files of the SDKs from the OpenAPI document of the server:
// sdk/go/api with oapi-codegen, and sdk/typescript/schema.d.ts with openapi-typescript. The
// versions of both generators are pinned in web/api/testdata/contract/go.mod and
// sdk/typescript/package-lock.json.
//
//	go -C lab run ./tools/dev/sdk NODE_MODULES
//
// It runs in the parent folder, the root of the repository. NODE_MODULES is the folder with the
// packages of sdk/typescript.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"dropbell/web/api"
	"dropbell/web/api/pipeline"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: sdk NODE_MODULES")
	}
	if err := os.Chdir(".."); err != nil {
		return err
	}
	return errors.Join(
		generateGo(ctx, ".", filepath.Join("sdk", "go", "api", "api.gen.go")),
		generateTypes(ctx, args[0], filepath.Join("sdk", "typescript", "schema.d.ts")))
}

// document writes the OpenAPI document to a file in dir, as a server without a public address
// answers GET /openapi.json. Refusals are left out, since the SDKs return all of them as
// problems, and so are the headers of answers. Both would be nine tenths of the generated code.
func document(dir string) (path string, err error) {
	var doc struct {
		OpenAPI    string                               `json:"openapi"`
		Info       any                                  `json:"info"`
		Paths      map[string]map[string]map[string]any `json:"paths"`
		Components any                                  `json:"components"`
	}
	if err := json.Unmarshal(api.New(api.Deps{Deps: pipeline.Deps{Now: time.Now}}).OpenAPI(), &doc); err != nil {
		return "", err
	}
	for _, operations := range doc.Paths {
		for _, operation := range operations {
			answers, _ := operation["responses"].(map[string]any)
			for status, answer := range answers {
				if status[0] != '2' {
					delete(answers, status)
				} else if answer, ok := answer.(map[string]any); ok {
					delete(answer, "headers")
				}
			}
		}
	}
	content, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "openapi.json")
	return path, os.WriteFile(path, content, 0o644)
}

// generateGo writes the Go client to out. root is the root of the repository.
func generateGo(ctx context.Context, root, out string) error {
	return generate(ctx, out, func(document, out string) (*exec.Cmd, error) {
		config, err := filepath.Abs(filepath.Join(root, "sdk", "go", "oapi-codegen.yml"))
		cmd := exec.CommandContext(ctx, "go", "tool", "oapi-codegen", "-config", config, "-o", out, document)
		cmd.Dir = filepath.Join(root, "web", "api", "testdata", "contract")
		cmd.Env = append(os.Environ(), "GOGC=off", "GOMEMLIMIT=1GiB", "GOFLAGS=-mod=readonly", "GOWORK=off")
		return cmd, err
	})
}

// generateTypes writes the types of TypeScript to out.
func generateTypes(ctx context.Context, modules, out string) error {
	return generate(ctx, out, func(document, out string) (*exec.Cmd, error) {
		return exec.CommandContext(ctx, filepath.Join(modules, ".bin", "openapi-typescript"), document, "-o", out), nil
	})
}

// generate runs a generator on the document. Its output replaces out as a whole.
func generate(ctx context.Context, out string, command func(document, out string) (*exec.Cmd, error)) error {
	dir, err := os.MkdirTemp("", "dropbell-sdk-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	from, err := document(dir)
	if err != nil {
		return err
	}
	made := filepath.Join(dir, "made")
	cmd, err := command(from, made)
	if err != nil {
		return err
	}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), errors.Join(ctx.Err(), err), said)
	}
	content, err := os.ReadFile(made)
	if err != nil {
		return err
	}
	return os.WriteFile(out, content, 0o644)
}
