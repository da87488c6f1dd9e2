package audience

import (
	"context"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/user"
	"dropbell/views/ui"
)

// AttributeTarget is the form's value for the target "attribute", which has a name.
const AttributeTarget = "attribute"

func (p ImportColumns) url() string { return "/users/import/" + strconv.FormatInt(p.Upload.ID, 10) }

// Reading is how the file was read, for the job that reads all of it.
func (p ImportColumns) Reading() job.Reading {
	return job.Reading{Encoding: p.Format.Encoding, Sheet: p.Format.Sheet}
}

func encodingOptions(ctx context.Context) (list []ui.Option) {
	for _, name := range job.Encodings() {
		list = append(list, ui.Option{Value: name, Label: ui.T(ctx, "encoding."+name)})
	}
	return list
}

func (p ImportColumns) sheetOptions() (list []ui.Option) {
	for i, name := range p.Format.Sheets {
		list = append(list, ui.Option{Value: strconv.Itoa(i + 1), Label: name})
	}
	return list
}

// errorAt returns the error of column i.
func (p ImportColumns) errorAt(ctx context.Context, i int) string {
	return ui.ErrorOf(ctx, p.Errors, "columns["+strconv.Itoa(i)+"]")
}

// whole are the errors that concern no single column.
func (p ImportColumns) whole() []fault.Field {
	var list []fault.Field
	for _, e := range p.Errors {
		if !strings.HasPrefix(e.Name, "columns[") {
			list = append(list, e)
		}
	}
	return list
}

func importTargets(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "import.ignore")}}
	for _, t := range user.Targets() {
		list = append(list, ui.Option{Value: string(t), Label: ui.T(ctx, "import.target."+string(t))})
	}
	return append(list, ui.Option{Value: AttributeTarget, Label: ui.T(ctx, "import.target.attribute")})
}

func sampleText(list []string) string {
	text := strings.Join(list, ", ")
	if r := []rune(text); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return text
}
