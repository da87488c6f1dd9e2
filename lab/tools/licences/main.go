// Licences writes the licences of all third-party parts of the programs into one text: of each
// Go module that is linked in on any platform of a release, and of the third-party files in
// views and web/links.
//
//	go -C lab run ./tools/licences FILE
//
// It runs in the parent folder, the root of the repository. FILE is relative to that folder.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// programs are the programs of a release. platforms are the platforms for which it is built.
var (
	programs  = []string{"./web", "./worker", "./dropbell"}
	platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: licences FILE")
		os.Exit(2)
	}
	var text bytes.Buffer
	err := os.Chdir("..")
	if err == nil {
		err = write(&text)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(os.Args[1]), 0o755)
	}
	if err == nil {
		err = os.WriteFile(os.Args[1], text.Bytes(), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// A library is a third-party part of the programs.
type library struct {
	name  string
	files []string // its licences and notices
}

// write writes all licences to w. A library without one is an error.
func write(w io.Writer) error {
	libraries, err := linked(programs, platforms)
	if err != nil {
		return err
	}
	for _, dir := range []string{"views", "web/links"} {
		assets, err := ofAssets(dir)
		if err != nil {
			return err
		}
		libraries = append(libraries, assets...)
	}
	for _, l := range libraries {
		if len(l.files) == 0 {
			return fmt.Errorf("%s has no file that states its licence", l.name)
		}
		fmt.Fprintf(w, "%s\n%s\n", strings.Repeat("=", 80), l.name)
		for _, file := range l.files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s\n\n%s\n\n", strings.Repeat("-", 80), strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
		}
	}
	return nil
}

// linked returns, by name, the third-party modules that the packages link on the platforms, and
// Go's own standard library.
func linked(packages, platforms []string) ([]library, error) {
	found := map[string]library{}
	root, err := goCommand("", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if found["Go"], err = libraryAt("Go, its standard library", strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	for _, platform := range platforms {
		list, err := goCommand(platform, append([]string{"list", "-deps", "-json=Module"}, packages...)...)
		if err != nil {
			return nil, err
		}
		for d := json.NewDecoder(bytes.NewReader(list)); ; {
			var p struct {
				Module *struct {
					Path, Version, Dir string
					Main               bool
					Replace            *struct{ Path, Version, Dir string }
				}
			}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			m := p.Module
			if m == nil || m.Main || strings.HasPrefix(m.Path, "dropbell") || found[m.Path].name != "" {
				continue
			}
			dir := m.Dir
			if m.Replace != nil {
				dir = m.Replace.Dir
			}
			if found[m.Path], err = libraryAt(m.Path+" "+m.Version, dir); err != nil {
				return nil, err
			}
		}
	}
	var libraries []library
	for _, name := range slices.Sorted(maps.Keys(found)) {
		libraries = append(libraries, found[name])
	}
	return libraries, nil
}

func goCommand(platform string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if system, machine, ok := strings.Cut(platform, "/"); ok {
		cmd.Env = append(cmd.Env, "GOOS="+system, "GOARCH="+machine)
	}
	return cmd.Output()
}

var states = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([._-].*)?$|^.+[._-]licen[cs]e(\.(txt|md))?$`)

// libraryAt finds the files in the folder that state the licence. The first file is the licence
// itself.
func libraryAt(name, dir string) (library, error) {
	l := library{name: name}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() && states.MatchString(e.Name()) && !strings.HasSuffix(e.Name(), ".go") {
			l.files = append(l.files, filepath.Join(dir, e.Name()))
		}
	}
	return l, err
}

// ofAssets finds the licences that are stored with the third-party files below the folder.
func ofAssets(dir string) (list []library, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if name, is := strings.CutSuffix(filepath.Base(path), ".LICENSE.txt"); is && err == nil {
			list = append(list, library{name, []string{path}})
		}
		return err
	})
	return list, err
}
