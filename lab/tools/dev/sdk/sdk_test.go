package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"dropbell/adapters/localstack"
	"dropbell/musttest"
)

const root = "../../../.."

// TestSDKsAreUpToDate generates the SDKs' generated files again: the committed files match the
// present document.
func TestSDKsAreUpToDate(t *testing.T) {
	t.Parallel()
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		made := filepath.Join(t.TempDir(), "made")
		musttest.OK(t, generateGo(t.Context(), root, made))
		same(t, made, filepath.Join(root, "sdk", "go", "api", "api.gen.go"))
	})
	t.Run("typescript", func(t *testing.T) {
		t.Parallel()
		made := filepath.Join(t.TempDir(), "made")
		musttest.OK(t, generateTypes(t.Context(), localstack.NPMPackages(t, filepath.Join(root, "sdk", "typescript")), made))
		same(t, made, filepath.Join(root, "sdk", "typescript", "schema.d.ts"))
	})
}

func same(t *testing.T, made, committed string) {
	t.Helper()
	a, err := os.ReadFile(made)
	musttest.OK(t, err)
	b, err := os.ReadFile(committed)
	musttest.OK(t, err)
	if !bytes.Equal(a, b) {
		t.Errorf("%s is stale: run go tool task sdk", committed)
	}
}

// TestGoSDK runs the tests of the Go SDK. The SDK is a module of its own, so that a shop that
// imports it gets none of the server's dependencies.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"vet"}, {"test", "-count=1"}} {
		cmd := exec.CommandContext(t.Context(), "go", append(append(args, localstack.GoFlags()...), "./...")...)
		cmd.Dir = filepath.Join(root, "sdk", "go")
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %v: %v\n%s", args, err, said)
		}
	}
}

// TestTypeScriptSDK: the declarations type-check. The uses in types.test.ts compile, and the
// uses that are marked as mistakes do not.
func TestTypeScriptSDK(t *testing.T) {
	t.Parallel()
	modules := localstack.NPMPackages(t, filepath.Join(root, "sdk", "typescript"))
	sdk, err := filepath.Abs(filepath.Join(root, "sdk", "typescript"))
	musttest.OK(t, err)
	for _, cmd := range []*exec.Cmd{
		exec.CommandContext(t.Context(), filepath.Join(modules, ".bin", "tsc"), "-p", sdk, "--typeRoots", filepath.Join(modules, "@types")),
		exec.CommandContext(t.Context(), "node", "--test", filepath.Join(sdk, "test", "helpers.test.mjs")),
	} {
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", cmd.Args, err, said)
		}
	}
}
