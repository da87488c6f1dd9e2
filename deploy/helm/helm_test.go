// Package helm_test holds the chart to helm, to the API of Kubernetes, to golden files and to the
// variables of the programs.
package helm_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"dropbell"
	"dropbell/adapters/config"
	"dropbell/musttest"
)

// golden says that golden files and the names in the schema are written instead of compared.
var golden = os.Getenv("DROPBELL_GOLDEN") != ""

// A result is what testdata/check says of the chart with one file of values.
type result struct {
	Error        string
	Lint, Strict []string
	Objects      map[string]string
}

// checked builds testdata/check and runs it with all files of values. missing says why the program
// cannot be built on this machine.
var checked = sync.OnceValues(func() (results map[string]result, missing string) {
	dir := filepath.Join("testdata", "check")
	download := exec.Command("go", "mod", "download")
	download.Dir = dir
	if out, err := download.CombinedOutput(); err != nil {
		return nil, "the modules of testdata/check cannot be downloaded: " + err.Error() + "\n" + string(out)
	}
	temporary, err := os.MkdirTemp("", "dropbell-chart")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	program := filepath.Join(temporary, "check")
	build := exec.Command("go", "build", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o", program, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		panic("testdata/check cannot be built: " + err.Error() + "\n" + string(out))
	}
	files, err := filepath.Glob("testdata/[vr]*/*.yaml")
	if err != nil {
		panic(err)
	}
	out, err := exec.Command(program, append([]string{"dropbell", "examples/cloudnative-pg-values.yaml"}, files...)...).Output()
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(out, &results); err != nil {
		panic(err)
	}
	return results, ""
})

// sumFile has the sum of the chart as it was checked last.
const sumFile = "testdata/checked.sum"

// TestMain notes that the chart is checked, after all tests have written their files.
func TestMain(m *testing.M) {
	code := m.Run()
	if golden && code == 0 {
		if err := os.WriteFile(sumFile, []byte(sum()+"\n"), 0o644); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}

// sum is the SHA-256 of the names and contents of everything that the results depend on.
func sum() string {
	h := sha256.New()
	for _, v := range config.Variables() {
		fmt.Fprintln(h, v.Name)
	}
	for _, root := range []string{"dropbell", "examples", "testdata", "../../docs/operations/alerts.yml"} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || name == sumFile {
				return err
			}
			raw, err := os.ReadFile(name)
			fmt.Fprintf(h, "%s %d\n%s", filepath.ToSlash(name), len(raw), raw)
			return err
		})
		if err != nil {
			panic(err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// rendered returns the results. It skips the test if nothing has changed since the chart was
// checked, because helm takes minutes to compile, and where helm's modules cannot be downloaded.
func rendered(t *testing.T) map[string]result {
	t.Helper()
	if known, err := os.ReadFile(sumFile); err == nil && !golden && strings.TrimSpace(string(known)) == sum() {
		t.Skip("nothing has changed since the chart was checked; DROPBELL_GOLDEN=1 checks it again")
	}
	results, missing := checked()
	if missing != "" && os.Getenv("CI") != "" {
		t.Fatal(missing)
	} else if missing != "" {
		t.Skip("NOT CHECKED: " + missing)
	}
	return results
}

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	musttest.OK(t, err)
	return string(raw)
}

func parse(t *testing.T, text string, to any) {
	t.Helper()
	musttest.OK(t, yaml.Unmarshal([]byte(text), to))
}

// TestChart: helm lint finds nothing, every object is one that its API knows with all of its
// fields, and the objects are those of the golden file.
func TestChart(t *testing.T) {
	seen := 0
	for file, r := range rendered(t) {
		if strings.HasPrefix(file, "testdata/refused") {
			continue
		}
		seen++
		if r.Error != "" || len(r.Lint) > 0 || len(r.Strict) > 0 {
			t.Errorf("%s: %s\nlint: %s\nstrict: %s", file, r.Error, strings.Join(r.Lint, "\n"), strings.Join(r.Strict, "\n"))
		}
		// The alerts are compared with their file in TestAlertsHaveOneSource.
		alerts := "  " + strings.ReplaceAll(strings.TrimSpace(read(t, "../../docs/operations/alerts.yml")), "\n", "\n  ")
		var all strings.Builder
		for _, name := range slices.Sorted(maps.Keys(r.Objects)) {
			all.WriteString("# " + name + "\n" + strings.Replace(r.Objects[name], alerts, "  # docs/operations/alerts.yml", 1))
		}
		name := filepath.Join("testdata", "golden", filepath.Base(file))
		if golden {
			musttest.OK(t, os.WriteFile(name, []byte(all.String()), 0o644))
		}
		if d := cmp.Diff(read(t, name), all.String()); d != "" {
			t.Errorf("%s renders something that is not %s; DROPBELL_GOLDEN=1 writes it anew:\n%s", file, name, d)
		}
	}
	if seen != 4 {
		t.Errorf("%d files of values were rendered", seen)
	}
}

// TestRefusedValues: values with which the installation would not work are refused, and the
// refusal has the words of the file's first line.
func TestRefusedValues(t *testing.T) {
	seen := 0
	for file, r := range rendered(t) {
		if !strings.HasPrefix(file, "testdata/refused") {
			continue
		}
		seen++
		want, _, _ := strings.Cut(strings.TrimPrefix(read(t, file), "# "), "\n")
		if !strings.Contains(r.Error, want) {
			t.Errorf("%s: %q does not say %q", file, r.Error, want)
		}
	}
	if seen != 6 {
		t.Errorf("%d files were refused", seen)
	}
}

// TestAlertsHaveOneSource: the chart holds no copy of the alerts, but a link, and its rule is all
// of them.
func TestAlertsHaveOneSource(t *testing.T) {
	info, err := os.Lstat("dropbell/files/alerts.yml")
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Fatalf("the chart's alerts are no link: %v, %v", info, err)
	}
	var want any
	parse(t, read(t, "../../docs/operations/alerts.yml"), &want)
	var got struct {
		Kind string
		Spec any
	}
	for object := range strings.SplitSeq(rendered(t)["testdata/values/all.yaml"].Objects["monitoring.yaml"], "\n---\n") {
		if parse(t, object, &got); got.Kind == "PrometheusRule" {
			break
		}
	}
	if got.Kind != "PrometheusRule" || !reflect.DeepEqual(got.Spec, want) {
		t.Errorf("the rule of the chart differs: %s", cmp.Diff(want, got.Spec))
	}
}

// variables returns the environment variables that containers get, with the values of file.
func variables(t *testing.T, file string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	var walk func(any)
	walk = func(node any) {
		switch v := node.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if list, ok := v["env"].([]any); ok {
				for _, item := range list {
					name := item.(map[string]any)["name"].(string)
					names[name] = true
				}
			}
			for _, item := range v {
				walk(item)
			}
		}
	}
	for name, text := range rendered(t)[file].Objects {
		if name == "NOTES.txt" {
			continue
		}
		for object := range strings.SplitSeq(text, "\n---\n") {
			var node any
			parse(t, object, &node)
			walk(node)
		}
	}
	return names
}

// TestVariables: the chart sets variables that the programs know, and the schema permits every
// other one in env, and none that the chart sets.
func TestVariables(t *testing.T) {
	known := map[string]bool{}
	for _, v := range config.Variables() {
		known[v.Name] = true
	}
	set := variables(t, "testdata/values/all.yaml")
	for name := range set {
		if !known[name] {
			t.Errorf("the chart sets %s, which no program reads", name)
		}
	}
	inValues := []string{"TRUSTED_PROXIES", "RATE_LIMIT_PER_MINUTE", "MAX_IN_FLIGHT", "WORKER_BATCHES"}
	var free []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !set[name] || slices.Contains(inValues, name) {
			free = append(free, name)
		}
	}
	const file = "dropbell/values.schema.json"
	list := regexp.MustCompile(`(?s)("variables": \{\s*"enum": )\[[^\]]*\]`)
	if golden {
		names, err := json.MarshalIndent(free, "        ", "  ")
		musttest.OK(t, err)
		musttest.OK(t, os.WriteFile(file, []byte(list.ReplaceAllString(read(t, file), "${1}"+string(names))), 0o644))
	}
	var schema struct {
		Defs struct {
			Variables struct{ Enum []string }
		} `yaml:"$defs"`
	}
	parse(t, read(t, file), &schema)
	if d := cmp.Diff(free, schema.Defs.Variables.Enum); d != "" {
		t.Errorf("%s permits other variables than there are; DROPBELL_GOLDEN=1 writes them anew:\n%s", file, d)
	}
}

// TestRolesAndChannels: the chart knows the roles and channels that the programs know.
func TestRolesAndChannels(t *testing.T) {
	helpers := read(t, "dropbell/templates/_helpers.tpl")
	for variable, loop := range map[string]string{"WORKER_ROLES": "role", "WORKER_CHANNELS": "channel"} {
		m := regexp.MustCompile(`range \$` + loop + ` := list ([^}]*) \}\}`).FindStringSubmatch(helpers)
		if m == nil {
			t.Fatalf("the chart checks no %s", loop)
		}
		names := strings.Split(strings.ReplaceAll(m[1], `"`, ""), " ")
		schema := `"` + strings.Join(names, `",`+"\n"+strings.Repeat(" ", 20)+`"`) + `"`
		if compact := regexp.MustCompile(`\s+`); !strings.Contains(compact.ReplaceAllString(read(t, "dropbell/values.schema.json"), ""), compact.ReplaceAllString(schema, "")) {
			t.Errorf("the schema has other names of a %s than %v", loop, names)
		}
		for _, name := range names {
			if _, err := config.LoadOnly(func(n string) string { return map[string]string{variable: name}[n] }, variable); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		i := slices.IndexFunc(config.Variables(), func(v config.Variable) bool { return v.Name == variable })
		meaning := config.Variables()[i].Meaning
		if loop == "role" {
			if n := len(regexp.MustCompile(`[a-z]+ \(`).FindAllString(meaning, -1)); n != len(names) {
				t.Errorf("worker knows %d roles, the chart %d: %s", n, len(names), meaning)
			}
		} else if !strings.Contains(meaning, ": "+strings.Join(names, ", ")+";") {
			t.Errorf("worker knows other channels than %v: %s", names, meaning)
		}
	}
}

// TestPodsHaveNoRights: every pod runs as a user without rights, on a file system that it cannot
// change, without a token of Kubernetes, and with a limit of memory.
func TestPodsHaveNoRights(t *testing.T) {
	pods := 0
	for name, text := range rendered(t)["testdata/values/least.yaml"].Objects {
		if !slices.Contains([]string{"web.yaml", "workers.yaml", "jobs.yaml"}, name) {
			continue
		}
		for object := range strings.SplitSeq(text, "\n---\n") {
			if !strings.Contains(object, "containers:") {
				continue
			}
			pods++
			for _, want := range []string{"runAsNonRoot: true", "runAsUser: 10001", "seccompProfile: {type: RuntimeDefault}", "allowPrivilegeEscalation: false",
				"readOnlyRootFilesystem: true", "capabilities: {drop: [ALL]}", "automountServiceAccountToken: false", "memory: "} {
				if !strings.Contains(object, want) {
					t.Errorf("a pod of %s lacks %q", name, want)
				}
			}
		}
	}
	if pods != 7 { // web, three groups of workers, migrate, contract, doctor
		t.Errorf("%d pods were found", pods)
	}
}

// TestVersion: the chart has the version of the programs.
func TestVersion(t *testing.T) {
	var chart struct{ Version, AppVersion string }
	parse(t, strings.ReplaceAll(read(t, "dropbell/Chart.yaml"), "appVersion", "appversion"), &chart)
	if v := dropbell.Version(); chart.Version != v || chart.AppVersion != v {
		t.Errorf("the chart is %+v, the programs %s", chart, v)
	}
}

// TestCloudNativePG: the values of the example name the secret, the database's pods and the key
// that the operator makes for the cluster of the example.
func TestCloudNativePG(t *testing.T) {
	var cluster struct {
		Metadata struct{ Name string }
		Spec     struct {
			Instances  int
			PostgreSQL struct {
				Parameters map[string]string
			} `yaml:"postgresql"`
		}
	}
	parse(t, read(t, "examples/cloudnative-pg.yaml"), &cluster)
	var values struct {
		Database struct {
			ExistingSecret string `yaml:"existingSecret"`
			URLKey         string `yaml:"urlKey"`
		}
	}
	text := read(t, "examples/cloudnative-pg-values.yaml")
	parse(t, text, &values)
	if values.Database.ExistingSecret != cluster.Metadata.Name+"-app" || values.Database.URLKey != "uri" || !strings.Contains(text, "cnpg.io/cluster: "+cluster.Metadata.Name+"}") {
		t.Errorf("the example's values %+v are not of the cluster %s", values, cluster.Metadata.Name)
	}
	for name := range cluster.Spec.PostgreSQL.Parameters {
		if name != "max_connections" && !strings.Contains(read(t, "../../docs/operations.md"), "`"+name+"`") {
			t.Errorf("%s is no setting that the handbook names", name)
		}
	}
}
