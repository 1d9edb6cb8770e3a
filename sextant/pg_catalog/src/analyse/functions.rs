//! Calls of functions, aggregates and window functions.

use sqlparser::ast::{
    self, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, WindowFrameBound, WindowSpec, WindowType,
};

use super::Analyser;
use super::coerce::{Context, can_coerce, coerce, common_type};
use super::expr::row;
use super::grouping::Mark;
use super::idents::{folded, place, qualified};
use super::polymorphic::polymorphic;
use super::resolve::{Candidate, NoChoice, choose};
use super::scope::Clause;
use crate::data::{FunctionRow, data};
use crate::error::{Error, Result};
use crate::plan::{
    Aggregate, Call, Expr, ExprKind, SetReturning, SubqueryKind, Window, WindowFunction,
};
use crate::types::name::{type_name, type_of_name};
use crate::types::oid::{self, Oid};
use crate::types::{Field, Type};

/// The arguments of a call.
#[derive(Default)]
struct Arguments {
    list: Vec<Expr>,
    is_star: bool,
    distinct: bool,
    order: Vec<(Expr, bool, bool)>,
}

/// A function with arguments that have its types.
pub(super) struct ResolvedCall {
    pub(super) function: &'static FunctionRow,
    pub(super) arguments: Vec<Expr>,
    pub(super) result: Type,
}

impl Analyser<'_> {
    /// Analyses a call.
    pub(super) fn function(&mut self, call: &ast::Function) -> Result<Expr> {
        let (schema, ident) = qualified(&call.name, self.names.database)?;
        let name = folded(&ident);
        if let (None, FunctionArguments::None) = (&schema, &call.args) {
            return self.word(&name).map_err(|error| place(error, &ident));
        }
        if let FunctionArguments::Subquery(query) = &call.args {
            return self.subquery(query, SubqueryKind::Array);
        }
        if schema.is_none()
            && let Some(expr) = self.grammar_function(&name, call)?
        {
            return Ok(expr);
        }
        let outer = self.level().clause;
        let is_aggregate =
            data().functions_named(&name).any(|row| row.kind == 'a') && call.over.is_none();
        if is_aggregate {
            self.check_aggregate(outer)?;
            self.level().clause = Clause::Aggregate;
        } else if call.over.is_some() {
            self.check_window(outer)?;
            self.level().clause = Clause::Window;
        }
        let result = self.call_with(schema.as_deref(), &name, call);
        self.level().clause = outer;
        result.map_err(|error| place(error, &ident))
    }

    fn call_with(
        &mut self,
        schema: Option<&str>,
        name: &str,
        call: &ast::Function,
    ) -> Result<Expr> {
        let mut arguments = self.arguments(call)?;
        let filter = call.filter.as_ref().map(|filter| self.truth(filter, "FILTER")).transpose()?;
        if !call.within_group.is_empty() {
            arguments.order = self.sort_list(&call.within_group)?;
        }
        let list = std::mem::take(&mut arguments.list);
        // The aggregated argument of WITHIN GROUP is one of the function's, after the direct ones.
        let ordered: Vec<Expr> = match call.within_group.is_empty() {
            true => Vec::new(),
            false => arguments.order.iter().map(|(expr, _, _)| expr.clone()).collect(),
        };
        let direct = list.len();
        let list: Vec<Expr> = list.into_iter().chain(ordered).collect();
        let resolved = match self.resolve(schema, name, list) {
            Ok(resolved) => resolved,
            Err(list) => return self.conversion(schema, name, list.0, list.1),
        };
        let ResolvedCall { function, arguments: mut list, result } = resolved;
        match function.kind {
            'a' if call.within_group.is_empty() || direct < list.len() => {
                if !call.within_group.is_empty() {
                    let typed = list.split_off(direct);
                    for (sorted, typed) in arguments.order.iter_mut().zip(typed) {
                        sorted.0 = typed;
                    }
                }
                let Arguments { distinct, order, .. } = arguments;
                let aggregate = Aggregate {
                    function: function.index,
                    arguments: list,
                    distinct,
                    order,
                    filter,
                    ty: result,
                };
                match &call.over {
                    None => self.add_aggregate(aggregate),
                    Some(over) => self.add_window(WindowFunction::Aggregate(aggregate), over),
                }
            }
            'w' => match &call.over {
                Some(over) => {
                    let function = WindowFunction::Window(function.index, list);
                    self.add_window_of(function, over, result)
                }
                None => Err(Error::new(
                    "42809",
                    format!("window function {name} requires an OVER clause"),
                )),
            },
            _ if call.over.is_some() => {
                let what = format!(
                    "OVER specified, but {name} is not a window function nor an aggregate function"
                );
                Err(Error::new("42809", what))
            }
            _ if arguments.distinct
                || !arguments.order.is_empty()
                || arguments.is_star
                || filter.is_some() =>
            {
                let what = format!(
                    "DISTINCT, ORDER BY, FILTER or * specified, but {name} is not an aggregate function"
                );
                Err(Error::new("42809", what))
            }
            _ => self.plain_call(function, list, result),
        }
    }

    /// Makes the call of a function with analysed arguments.
    pub(super) fn call(&mut self, name: &str, list: Vec<Expr>) -> Result<Expr> {
        match self.resolve(Some("pg_catalog"), name, list) {
            Ok(ResolvedCall { function, arguments, result }) => {
                self.plain_call(function, arguments, result)
            }
            Err((_, error)) => Err(error),
        }
    }

    fn plain_call(
        &mut self,
        function: &'static FunctionRow,
        list: Vec<Expr>,
        result: Type,
    ) -> Result<Expr> {
        self.is_volatile |= function.volatility == 'v';
        let call = Call::Function { index: function.index, is_array: false };
        if !function.returns_set {
            return Ok(Expr::new(ExprKind::Call(call, list), result));
        }
        if self.level().clause != Clause::Items {
            return Err(Error::unsupported(format!(
                "set-returning function {} is not allowed here",
                function.name
            ))
            .with_hint("put it into FROM"));
        }
        let set = SetReturning { call, arguments: list, ty: result.clone() };
        let level = self.level();
        let at = match level.set_returning.iter().position(|other| *other == set) {
            // `(f()).*` is one call.
            Some(at) if function.out.len() > 1 => at,
            _ => {
                level.set_returning.push(set);
                level.set_returning.len() - 1
            }
        };
        Ok(Mark::SetReturning.expr(at, result))
    }

    /// Analyses the arguments that a call lists.
    fn arguments(&mut self, call: &ast::Function) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        let FunctionArguments::List(list) = &call.args else { return Ok(arguments) };
        arguments.distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        for argument in &list.args {
            match self.argument(argument)? {
                Some(argument) => arguments.list.push(argument),
                None => arguments.is_star = true,
            }
        }
        for clause in &list.clauses {
            match clause {
                FunctionArgumentClause::OrderBy(order) => {
                    arguments.order = self.sort_list(order)?
                }
                other => {
                    return Err(Error::unsupported(format!("{other} in a call is not supported")));
                }
            }
        }
        Ok(arguments)
    }

    /// Analyses an argument; `None` for `*`.
    pub(super) fn argument(&mut self, argument: &FunctionArg) -> Result<Option<Expr>> {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.expr(expr).map(Some),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => Ok(None),
            FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                let (schema, table) = qualified(name, self.names.database)?;
                let schema = schema.map(ast::Ident::new);
                let (at, item) = self.item(schema.as_ref(), &table)?;
                let row = self.levels[at].items[item].row();
                Ok(Some(self.outwards(row, at)))
            }
            other => Err(Error::unsupported(format!("the argument {other} is not supported"))
                .with_hint("give the arguments by position")),
        }
    }

    pub(super) fn sort_list(
        &mut self,
        list: &[ast::OrderByExpr],
    ) -> Result<Vec<(Expr, bool, bool)>> {
        let mut order = Vec::new();
        for item in list {
            let (descending, nulls_first) = super::query::direction(item)?;
            let expr = self.expr(&item.expr)?;
            let expr = self.known(expr)?;
            order.push((expr, descending, nulls_first));
        }
        Ok(order)
    }

    /// Gives a literal of unknown type the type `text`.
    pub(super) fn known(&mut self, expr: Expr) -> Result<Expr> {
        match expr.ty.oid() {
            oid::UNKNOWN => self.implicit(expr, &Type::Plain(oid::TEXT)),
            _ => Ok(expr),
        }
    }

    /// Chooses the function; with the error the arguments come back.
    pub(super) fn resolve(
        &mut self,
        schema: Option<&str>,
        name: &str,
        list: Vec<Expr>,
    ) -> std::result::Result<ResolvedCall, (Vec<Expr>, Error)> {
        let types: Vec<Oid> = list.iter().map(|expr| expr.ty.oid()).collect();
        let path = self.names.search_path;
        let visible = |row: &&FunctionRow| match schema {
            Some(schema) => row.schema == schema,
            None => row.schema == "pg_catalog" || path.contains(&row.schema),
        };
        let rows = data().functions_named(name).filter(visible);
        let candidates = rows.filter_map(|row| candidate(row, types.len())).collect();
        let chosen = choose(candidates, &types, false);
        let call = || {
            let shown: Vec<String> = list.iter().map(|expr| type_name(&expr.ty)).collect();
            format!("{name}({})", shown.join(", "))
        };
        let chosen = match chosen {
            Ok(chosen) => chosen,
            Err(NoChoice::None) => {
                let error = Error::new("42883", format!("function {} does not exist", call())).with_hint(
                    "No function matches the given name and argument types. You might need to add explicit type casts.",
                );
                return Err((list, error));
            }
            Err(NoChoice::Ambiguous) => {
                let error = Error::new("42725", format!("function {} is not unique", call())).with_hint(
                    "Could not choose a best candidate function. You might need to add explicit type casts.",
                );
                return Err((list, error));
            }
        };
        self.typed(chosen, list).map_err(|error| (Vec::new(), error))
    }

    /// Converts the arguments to the types of the chosen function.
    fn typed(
        &mut self,
        chosen: Candidate<&'static FunctionRow>,
        list: Vec<Expr>,
    ) -> Result<ResolvedCall> {
        let function = chosen.choice;
        let types: Vec<Type> = list.iter().map(|expr| expr.ty.clone()).collect();
        let resolved = polymorphic(&chosen.parameters, &types, function.result)?;
        let mut arguments = Vec::new();
        for (expr, to) in list.into_iter().zip(&resolved.parameters) {
            arguments.push(match to.oid() {
                oid::ANY => self.known(expr)?,
                _ => self.implicit(expr, to)?,
            });
        }
        let result = match function.out.as_slice() {
            [] => resolved.result,
            [(_, _)] if function.result != oid::RECORD => resolved.result,
            columns => {
                let types: Vec<Oid> = columns.iter().map(|(_, ty)| *ty).collect();
                let element = types
                    .iter()
                    .map(|ty| polymorphic(&chosen.parameters, &argument_types(&arguments), *ty));
                let fields = columns
                    .iter()
                    .zip(element)
                    .map(|((name, _), ty)| Ok(Field { name: name.clone(), ty: ty?.result }));
                Type::Row(fields.collect::<Result<_>>()?)
            }
        };
        Ok(ResolvedCall { function, arguments, result })
    }

    /// Analyses `text(x)` and the like: a type's name with one argument is a cast, if no function takes it.
    fn conversion(
        &mut self,
        schema: Option<&str>,
        name: &str,
        list: Vec<Expr>,
        error: Error,
    ) -> Result<Expr> {
        let mut list = list.into_iter();
        let (Some(only), None, None | Some("pg_catalog")) = (list.next(), list.next(), schema)
        else {
            return Err(error);
        };
        let Some(ty) =
            type_of_name(name).filter(|ty| can_coerce(only.ty.oid(), *ty, Context::Explicit))
        else {
            return Err(error);
        };
        coerce(only, &Type::Plain(ty), -1, Context::Explicit, &mut self.parameters)
    }

    fn add_aggregate(&mut self, aggregate: Aggregate) -> Result<Expr> {
        let ty = aggregate.ty.clone();
        let level = self.level();
        let at = match level.aggregates.iter().position(|other| *other == aggregate) {
            Some(at) => at,
            None => {
                level.aggregates.push(aggregate);
                level.aggregates.len() - 1
            }
        };
        Ok(Mark::Aggregate.expr(at, ty))
    }

    fn add_window(&mut self, function: WindowFunction, over: &WindowType) -> Result<Expr> {
        let WindowFunction::Aggregate(aggregate) = &function else {
            return Err(Error::internal("an aggregate over a window"));
        };
        if aggregate.distinct || !aggregate.order.is_empty() {
            return Err(Error::unsupported(
                "DISTINCT and ORDER BY are not implemented for window functions",
            ));
        }
        let ty = aggregate.ty.clone();
        self.add_window_of(function, over, ty)
    }

    fn add_window_of(
        &mut self,
        function: WindowFunction,
        over: &WindowType,
        ty: Type,
    ) -> Result<Expr> {
        let spec = self.window_spec(over)?;
        check_frame(&spec)?;
        let partition = spec.partition_by.iter().map(|expr| {
            let expr = self.expr(expr)?;
            self.known(expr)
        });
        let partition = partition.collect::<Result<_>>()?;
        let order = self.sort_list(&spec.order_by)?;
        let level = self.level();
        level.windows.push(Window { function, partition, order, ty: ty.clone() });
        Ok(Mark::Window.expr(level.windows.len() - 1, ty))
    }

    /// Returns the definition of a window, which may have a name.
    fn window_spec(&mut self, over: &WindowType) -> Result<WindowSpec> {
        let name = match over {
            WindowType::WindowSpec(spec) if spec.window_name.is_none() => return Ok(spec.clone()),
            WindowType::WindowSpec(spec) => spec.window_name.clone(),
            WindowType::NamedWindow(name) => Some(name.clone()),
        };
        let name = name.map(|name| folded(&name)).unwrap_or_default();
        let named =
            self.level().named_windows.iter().find(|window| folded(&window.0) == name).cloned();
        let missing = || Error::new("42704", format!("window \"{name}\" does not exist"));
        match named.ok_or_else(missing)?.1 {
            ast::NamedWindowExpr::NamedWindow(_) => {
                Err(Error::unsupported("a window that names another one"))
            }
            ast::NamedWindowExpr::WindowSpec(mut spec) => {
                if let WindowType::WindowSpec(own) = over {
                    spec.order_by.extend(own.order_by.iter().cloned());
                    spec.window_frame = own.window_frame.clone().or(spec.window_frame);
                }
                Ok(spec)
            }
        }
    }

    fn check_aggregate(&self, outer: Clause) -> Result<()> {
        match outer {
            Clause::Items | Clause::Having | Clause::Window => Ok(()),
            Clause::Aggregate => {
                Err(Error::new("42803", "aggregate function calls cannot be nested"))
            }
            Clause::Plain => Err(Error::new("42803", "aggregate functions are not allowed here")
                .with_hint("HAVING, the select list and ORDER BY may contain them")),
        }
    }

    fn check_window(&self, outer: Clause) -> Result<()> {
        match outer {
            Clause::Items => Ok(()),
            Clause::Window => Err(Error::new("42P20", "window function calls cannot be nested")),
            _ => Err(Error::new("42P20", "window functions are not allowed here")),
        }
    }

    /// Analyses the words that PostgreSQL's grammar knows as functions with arguments of any type.
    fn grammar_function(&mut self, name: &str, call: &ast::Function) -> Result<Option<Expr>> {
        if !matches!(name, "coalesce" | "nullif" | "greatest" | "least" | "row") {
            return Ok(None);
        }
        let list = self.arguments(call)?.list;
        if name == "row" {
            return Ok(Some(row(list)));
        }
        if name == "nullif" {
            let Ok([left, right]) = <[Expr; 2]>::try_from(list) else {
                return Err(Error::new("42601", "NULLIF takes two arguments"));
            };
            let left = self.known(left)?;
            let equal = self.operator("=", left.clone(), right)?;
            let null = Expr::constant(proto::value::Value::Null, left.ty.clone());
            let (ty, otherwise) = (left.ty.clone(), Some(Box::new(left)));
            return Ok(Some(Expr::new(
                ExprKind::Case { branches: vec![(equal, null)], otherwise },
                ty,
            )));
        }
        if list.is_empty() {
            return Err(Error::new("42601", format!("{} takes an argument", name.to_uppercase())));
        }
        let ty = common_type(list.iter().map(|expr| &expr.ty), &name.to_uppercase())?;
        let arguments =
            list.into_iter().map(|expr| self.implicit(expr, &ty)).collect::<Result<Vec<_>>>()?;
        let kind = match name {
            "coalesce" => ExprKind::Coalesce(arguments),
            _ => ExprKind::Extreme { arguments, least: name == "least" },
        };
        Ok(Some(Expr::new(kind, ty)))
    }
}

fn argument_types(arguments: &[Expr]) -> Vec<Type> {
    arguments.iter().map(|expr| expr.ty.clone()).collect()
}

/// Returns the candidate for a number of arguments; `None` if the function does not take so many.
fn candidate(
    row: &'static FunctionRow,
    arguments: usize,
) -> Option<Candidate<&'static FunctionRow>> {
    let mut parameters = row.arguments.clone();
    if row.variadic != 0 {
        parameters.pop();
        if arguments < parameters.len() + usize::from(row.variadic != oid::ANY) {
            return None;
        }
        parameters.resize(arguments, row.variadic);
    } else if arguments > parameters.len() || arguments + row.defaults < parameters.len() {
        return None;
    }
    parameters.truncate(arguments);
    Some(Candidate { parameters, choice: row })
}

/// Checks that the frame of a window is the default one, which is the only one here.
fn check_frame(spec: &WindowSpec) -> Result<()> {
    let Some(frame) = &spec.window_frame else { return Ok(()) };
    let from_start = matches!(frame.start_bound, WindowFrameBound::Preceding(None));
    let to_row = matches!(frame.end_bound, None | Some(WindowFrameBound::CurrentRow));
    match from_start && to_row && frame.units == ast::WindowFrameUnits::Range {
        true => Ok(()),
        false => Err(Error::unsupported("only the default frame of a window is supported")
            .with_hint(
                "the default frame is from the first row of the partition to the current row",
            )),
    }
}
