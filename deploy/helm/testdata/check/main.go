// Check lints and renders the chart as helm lint and helm template do, and decodes every object
// strictly: check CHART VALUES... prints a JSON object with the result of each file of values.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// A Result is what helm says of the chart with one file of values.
type Result struct {
	// Error is the refusal of the values or of a template; empty = the chart was rendered.
	Error string
	// Lint are the findings of helm lint.
	Lint []string
	// Objects is the rendered YAML, by template.
	Objects map[string]string
	// Strict are the errors of decoding the objects.
	Strict []string
}

func main() {
	log.SetOutput(io.Discard) // helm says that it follows the link to the alerts
	results := map[string]Result{}
	for _, file := range os.Args[2:] {
		results[file] = check(os.Args[1], file)
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(dir, file string) (r Result) {
	values, err := chartutil.ReadValuesFile(file)
	if err != nil {
		return Result{Error: err.Error()}
	}
	if r.Objects, err = render(dir, values); err != nil {
		return Result{Error: err.Error()}
	}
	for _, m := range lint.AllWithKubeVersion(dir, values, "shop", nil).Messages {
		if m.Severity > support.InfoSev {
			r.Lint = append(r.Lint, m.Error())
		}
	}
	for name, text := range r.Objects {
		for _, err := range strict(text) {
			r.Strict = append(r.Strict, fmt.Sprintf("%s: %v", name, err))
		}
	}
	slices.Sort(r.Strict)
	return r
}

// render returns the objects of each template, as helm template of a release called "evening" in
// the namespace "shop" does.
func render(dir string, values map[string]any) (map[string]string, error) {
	chart, err := loader.Load(dir)
	if err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: "evening", Namespace: "shop", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	objects := map[string]string{}
	for name, text := range texts {
		if text = strings.TrimSpace(text); text != "" && !strings.HasSuffix(name, ".tpl") {
			objects[strings.TrimPrefix(name, chart.Name()+"/templates/")] = text + "\n"
		}
	}
	if len(objects) == 0 {
		return nil, errors.New("the chart renders nothing")
	}
	return objects, nil
}
