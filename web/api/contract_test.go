package api_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/musttest"
	"dropbell/web/api"
	"dropbell/web/api/pipeline"
)

// toolTimeout bounds one run of a tool, the download of its parts included.
const toolTimeout = 5 * time.Minute

// contract is a directory with the document and the configuration of the tools that read it.
type contract struct {
	testing.TB
	dir string
}

// newContract copies testdata/contract, so that nothing is generated there.
func newContract(t testing.TB) contract {
	t.Helper()
	c := contract{t, t.TempDir()}
	musttest.OK(t, os.CopyFS(c.dir, os.DirFS("testdata/contract")))
	musttest.OK(t, os.WriteFile(filepath.Join(c.dir, "openapi.json"), document(), 0o644))
	return c
}

// document returns the answer of GET /openapi.json.
func document() []byte {
	return api.New(api.Deps{Deps: pipeline.Deps{Now: now}}).OpenAPI()
}

// run runs a tool, fails unless the tool succeeds, and returns its output.
func (c contract) run(name string, args ...string) string {
	c.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), toolTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = c.dir
	// The compiler of the tools collects garbage only beyond 1 GiB.
	cmd.Env = append(os.Environ(), "GOGC=off", "GOMEMLIMIT=1GiB", "GOFLAGS=-mod=readonly", "GOWORK=off", "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestLintersAcceptTheDocument runs the linters with their recommended rules, except the rules that
// redocly.yaml and .spectral.yaml turn off with a reason.
func TestLintersAcceptTheDocument(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(localstack.NPMPackages(t, "testdata/contract"), ".bin")
	c := newContract(t)
	if said := c.run(filepath.Join(bin, "redocly"), "lint", "openapi.json"); strings.Contains(said, "Warning was generated") {
		t.Error(said)
	}
	c.run(filepath.Join(bin, "spectral"), "lint", "--fail-severity=warn", "openapi.json")
}

// TestGeneratedClientsCompile: the clients that oapi-codegen and ogen generate compile. A go.mod of
// their own has the versions of both generators.
func TestGeneratedClientsCompile(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	for _, client := range []string{"oapiclient", "ogenclient"} {
		musttest.OK(t, os.Mkdir(filepath.Join(c.dir, client), 0o755))
	}
	c.run("go", "tool", "oapi-codegen", "-config", "oapi-codegen.yml", "-o", "oapiclient/client.go", "openapi.json")
	c.run("go", "tool", "ogen", "-config", "ogen.yml", "-loglevel", "error", "-target", "ogenclient", "-package", "ogenclient", "openapi.json")
	c.run("go", "vet", "./...")
}
