package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// keda is the module whose files have the schemas of KEDA's objects. Its Go types would be
// compiled with 600 packages.
const keda = "github.com/kedacore/keda/v2@v2.21.0"

// schemas are the files of the schemas, by kind.
var schemas = map[string]string{"ScaledObject": "keda.sh_scaledobjects.yaml", "TriggerAuthentication": "keda.sh_triggerauthentications.yaml"}

// A schema is the part of an OpenAPI schema that is checked.
type schema struct {
	Type                 string            `json:"type"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties *schema           `json:"additionalProperties"`
	Items                *schema           `json:"items"`
	Required             []string          `json:"required"`
	Enum                 []any             `json:"enum"`
	AnyKeys              bool              `json:"x-kubernetes-preserve-unknown-fields"`
}

// againstCRD compares the object with the schema of its kind.
func againstCRD(kind, object string) []error {
	var value any
	if err := yaml.UnmarshalStrict([]byte(object), &value); err != nil {
		return []error{err}
	}
	s, err := schemaOf(kind)
	if err != nil {
		return []error{err}
	}
	return s.check("", value)
}

// schemaOf reads the schema of a kind of KEDA from the files of its module.
func schemaOf(kind string) (schema, error) {
	out, err := exec.Command("go", "mod", "download", "-json", keda).Output()
	if err != nil {
		return schema{}, fmt.Errorf("%s cannot be downloaded: %w", keda, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return schema{}, err
	}
	raw, err := os.ReadFile(filepath.Join(module.Dir, "config/crd/bases", schemas[kind]))
	if err != nil {
		return schema{}, err
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return schema{}, err
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == "v1alpha1" {
			s := v.Schema.OpenAPIV3Schema
			s.Properties["metadata"] = schema{AnyKeys: true} // which the API server adds
			return s, nil
		}
	}
	return schema{}, fmt.Errorf("%s has no version v1alpha1", kind)
}

// check returns where value breaks the schema.
func (s schema) check(path string, value any) (wrong []error) {
	no := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s %s", path, fmt.Sprintf(format, args...)))
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		no("is %v, not one of %v", value, s.Enum)
	}
	switch v := value.(type) {
	case map[string]any:
		if s.Type != "object" && s.Type != "" {
			no("is an object, not %s", s.Type)
		}
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				no("lacks %s", name)
			}
		}
		for name, item := range v {
			of, known := s.Properties[name]
			switch {
			case known:
				wrong = append(wrong, of.check(path+"."+name, item)...)
			case s.AdditionalProperties != nil:
				wrong = append(wrong, s.AdditionalProperties.check(path+"."+name, item)...)
			case !s.AnyKeys:
				no("has no field %s", name)
			}
		}
	case []any:
		if s.Items == nil {
			no("is a list, not %s", s.Type)
			return wrong
		}
		for i, item := range v {
			wrong = append(wrong, s.Items.check(fmt.Sprintf("%s[%d]", path, i), item)...)
		}
	case string:
		if s.Type != "string" && s.Type != "" {
			no("is a text, not %s", s.Type)
		}
	case bool:
		if s.Type != "boolean" {
			no("is a boolean, not %s", s.Type)
		}
	case float64:
		if s.Type != "integer" && s.Type != "number" && s.Type != "" {
			no("is a number, not %s", s.Type)
		}
	}
	return wrong
}
