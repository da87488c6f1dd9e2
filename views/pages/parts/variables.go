package parts

import (
	"context"
	"slices"

	"dropbell/domain/message"
	"dropbell/views/ui"
)

// VariablesOf returns the variables of texts of the kind, in braces. The reader's name has a word for
// readers without a name.
func VariablesOf(ctx context.Context, k message.Kind) []string {
	list := slices.Clone(message.Variables(k))
	for i, v := range list {
		if list[i] = "{{" + v + "}}"; v == message.VarUser {
			list[i] = "{{user|" + ui.T(ctx, "message.variables.nameless") + "}}"
		}
	}
	return list
}
