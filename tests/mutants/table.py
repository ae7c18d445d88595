"""Changes of meaning, each of a line, and the tests that must notice them: files, or single tests where files are slow.

By file, below src/planvec: what is wrong then, the text (which is there exactly once), what it becomes, the tests.
"""

from pathlib import Path
from typing import NamedTuple


class Mutant(NamedTuple):
    file: str
    what: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def path(self) -> Path:
        """From the root of the tree."""
        return Path("src/planvec") / self.file

    def applied(self, text: str) -> str:
        return text.replace(self.old, self.new)


LOSSES = "training/test_losses.py"
UPDATE = "training/test_update.py"
LOOP = "training/test_loop.py"
OPTIMIZERS = "training/test_optimizers.py"
PPO = "training/test_ppo.py"
PRACTICE = "training/test_practice.py"
VERDICTS = "evaluation/test_verdicts.py"
SCORES = "evaluation/test_scores.py"
RUNNING = "tables/test_running.py"
REPORTING = "tables/test_reporting.py"
HOUSE = "test_architecture.py::test_a_file_imports_only_what_is_above_it"

TABLE: dict[str, list[tuple[str, ...]]] = {
    "plans.py": [
        (
            "plans know the worlds",
            "squared = jnp.sum(vector**2, axis=-1)",
            "import planvec.worlds; squared = jnp.sum(vector**2, axis=-1)",
            f"{HOUSE}[planvec.plans]",
        ),
        (
            "plans know the agents",
            "positive = squared > 0",
            "from planvec.agents import Agent; positive = squared > 0",
            f"{HOUSE}[planvec.plans]",
        ),
        ("minus adds", "self._combine(other, jnp.subtract)", "self._combine(other, jnp.add)", "test_plans.py"),
        (
            "the mean of references is their sum",
            "total / self.count, (self.first",
            "total, (self.first",
            "test_plans.py",
        ),
        ("plans of other agents mix", "if one.agent != other.agent or not", "if not", "test_plans.py"),
    ],
    "training/losses.py": [
        (
            "what is unlike the anchor is pulled nearer",
            "length(anchor - positive) - length(anchor - negative) + margin",
            "length(anchor - positive) + length(anchor - negative) + margin",
            LOSSES + "::test_triplet",
        ),
        (
            "Hom leaves out what is left",
            "triplet(done + left, whole, another(whole))",
            "triplet(done, whole, another(whole))",
            LOSSES + "::test_homomorphism",
        ),
        (
            "Pair contrasts with the demonstration in place of its reference",
            "triplet(whole, reference, another(reference))",
            "triplet(whole, reference, another(whole))",
            LOSSES + "::test_pair",
        ),
        (
            "tecnet's loss pulls strangers together",
            "+ jnp.sum(s * another(positive), axis=-1)",
            "- jnp.sum(s * another(positive), axis=-1)",
            LOSSES + "::test_contrastive",
        ),
        (
            "Alike divides by each sample's own distance",
            "/ jnp.maximum(jnp.mean(apart), TINY)",
            "/ jnp.maximum(apart, TINY)",
            LOSSES + "::test_alike",
        ),
        (
            "stops are weighed as all other moments are",
            "jax.nn.softplus(-logit) / ends",
            "jax.nn.softplus(-logit) / others",
            LOSSES + "::test_stop",
        ),
        (
            "a task is cancelled with the sample's own",
            "another(reference - whole)",
            "(reference - whole)",
            LOSSES + "::test_cancelling",
        ),
        (
            "another pair is the one before",
            "jnp.roll(x, -1, axis=0)",
            "jnp.roll(x, 1, axis=0)",
            LOSSES + "::test_pair",
        ),
        (
            "what is left begins at the beginning",
            '"left": ("now", "last")',
            '"left": ("first", "last")',
            LOSSES + "::test_total_is_the_sum_of_its_parts[cpv-full]",
        ),
        (
            "last moments are imitated, where there is no action",
            "acts = 1 - batch.over.astype(jnp.float32)",
            "acts = jnp.ones(len(batch.over))",
            LOSSES + "::test_last_moments_are_not_imitated",
        ),
        (
            "all losses weigh the same",
            "getattr(weights, name) * value for name",
            "value for name",
            LOSSES + "::test_total_is_the_sum_of_its_parts[tecnet]",
        ),
        (
            "what cancels is taken away in place of added",
            "plan = plan + cancelling(",
            "plan = plan - cancelling(",
            LOSSES + "::test_total_of_a_model_that_stops_is_the_sum_of_its_parts",
        ),
    ],
    "agents/agent.py": [
        (
            "cpv is given the whole plan at every step",
            "self.policy((now,), now, plans - done)",
            "self.policy((now,), now, plans)",
            "agents/test_agent.py::test_cpv_reads_what_is_left_of_the_plan",
        ),
        (
            "tecnet reads plans as they are",
            "unit(plans) if self.normalise else plans",
            "plans",
            "agents/test_agent.py::test_tecnet_normalises_on_reading_only",
        ),
        (
            "naive reads the sum of its references",
            "sum(leaves) / len(leaves)",
            "sum(leaves)",
            SCORES + "::test_naive_reads_the_mean_of_its_references",
        ),
        (
            "an agent acts on the plans of others",
            "if plan.agent != self.fingerprint:",
            "if False:",
            "agents/test_agent.py::test_plans_of_another_agent_are_refused",
        ),
        (
            "greedy agents draw lots, and others do not",
            "head.greedy(outputs) if greedy else head.sample(outputs, key)",
            "head.sample(outputs, key) if greedy else head.greedy(outputs)",
            "agents/test_agent.py::test_a_stop_is_said_beside_the_action",
        ),
        (
            "an agent has finished where much is left, by its metric",
            "return self.metric(left) < HALF",
            "return self.metric(left) > HALF",
            "agents/test_metric.py",
        ),
        (
            "one plan is done where much is left of it, by its metric",
            "bool(self.metric(self.values(left)) < HALF)",
            "bool(self.metric(self.values(left)) > HALF)",
            "agents/test_metric.py",
        ),
        (
            "an agent has finished where one skill of all is done",
            "jnp.max(self.reader(left), axis=-1) < HALF",
            "jnp.min(self.reader(left), axis=-1) < HALF",
            "agents/test_agent.py::test_a_batch_is_finished_where_each_is_done",
        ),
        (
            "progress is what is left",
            "jnp.clip(1 - rest / jnp.maximum",
            "jnp.clip(rest / jnp.maximum",
            "agents/test_metric.py",
        ),
    ],
    "agents/policies.py": [
        (
            "agents stop where that is less likely than not",
            "return outputs.stop > 0",
            "return outputs.stop < 0",
            "agents/test_agent.py::test_a_stop_is_said_beside_the_action",
        ),
        (
            "the chance of an action forgets that of going on",
            "goes_on = jax.nn.log_sigmoid(-outputs.stop) + self",
            "goes_on = self",
            "agents/test_policies.py::test_chances_of_stopping_and_of_each_action_add_up_to_one",
        ),
        (
            "the entropy is not weighed by the chances",
            "-jnp.sum(jnp.exp(logs) * logs, axis=-1)",
            "-jnp.sum(logs, axis=-1)",
            "agents/test_policies.py::test_entropy_by_hand",
        ),
        (
            "imitation does not care for other actions",
            "jax.nn.logsumexp(outputs, axis=-1) - chosen",
            "-chosen",
            "agents/test_policies.py::test_categorical_chooses_and_scores",
        ),
        (
            "of a pile any cube is grasped",
            "beside - self.STEEP * objects[..., 2]",
            "beside",
            "agents/test_policies.py::test_a_grasp_takes_the_nearest_object_and_of_a_pile_the_top",
        ),
        (
            "all objects go to one place",
            "_pick(outputs.places, best)], axis=-1)",
            "outputs.places[..., 0, :]], axis=-1)",
            "agents/test_policies.py::test_pick_and_place_puts_each_object_in_its_place",
        ),
    ],
    "agents/potentials.py": [
        (
            "a potential forgets where it began",
            "self.potential(last) - self.potential(first)",
            "self.potential(last)",
            "agents/test_potentials.py",
        ),
        (
            "a tile counts once, however often it lies there",
            "_exactly(counts, table)",
            "_exactly(jnp.minimum(counts, 1), table)",
            "agents/test_potentials.py",
        ),
        (
            "potentials are rounded as all else is",
            "keeps_precision = True",
            "keeps_precision = False",
            "agents/test_potentials.py",
        ),
    ],
    "agents/residual.py": [
        ("blocks forget what came in", "return x + convolve(", "return convolve(", "agents/test_board_policy.py"),
        (
            "blocks do not read the plan",
            "jax.nn.relu(x + self.read(plan)[:, None, None, :])",
            "jax.nn.relu(x)",
            "agents/test_board_policy.py",
        ),
        (
            "large plans are read as they are",
            "jnp.tanh(product + self.linear.bias)",
            "product + self.linear.bias",
            "agents/test_board_policy.py",
        ),
        (
            "queries compete for a place, in place of places for a query",
            "out=jnp.float32), axis=1)",
            "out=jnp.float32), axis=2)",
            "agents/test_board_policy.py",
        ),
    ],
    "agents/metric.py": [
        (
            "a metric measures all directions alike",
            "length(jnp.matmul(plans, self.factor, precision=jax.lax.Precision.HIGHEST))",
            "length(plans)",
            "agents/test_metric.py",
        ),
        (
            "the metric of other weights is taken",
            'if described["agent"] != agent:',
            "if False:",
            "agents/test_metric.py",
        ),
    ],
    "agents/probe.py": [
        (
            "too much of one skill makes up for another",
            "rest = jnp.maximum(left, 0).sum(axis=-1)",
            "rest = left.sum(axis=-1)",
            "agents/test_probe.py::test_edges_of_progress",
        ),
    ],
    "agents/zoo.py": [
        (
            "tecnet imitates with full weight",
            "Weights(imitation=0.1, contrastive=1.0)",
            "Weights(contrastive=1.0)",
            "agents/test_zoo.py::test_the_ten_models_as_the_paper_has_them",
        ),
        (
            "an agent has a stop by its name alone",
            "bool((weights or spec.weights).stop)",
            "bool(spec.weights.stop)",
            "agents/test_zoo.py::test_an_agent_can_stop_where_that_is_weighed",
        ),
    ],
    "training/update.py": [
        (
            "all seeds are given the same samples",
            "random_key(seed, SAMPLES, states.step[0])",
            "random_key(jnp.uint32(0), SAMPLES, states.step[0])",
            UPDATE + "::test_every_seed_is_given_samples_of_its_own",
        ),
        (
            "the same batch at every step",
            "random_key(seed, SAMPLES, states.step[0])",
            "random_key(seed, SAMPLES, 0)",
            UPDATE + "::test_every_step_is_given_samples_of_its_own",
        ),
        (
            "all kinds are trained on the losses of the first",
            "update(state, batch, weights_of(kinds, kind), config)",
            "update(state, batch, kinds[0].weights, config)",
            UPDATE + "::test_each_kind_is_trained_on_its_own_losses",
        ),
        (
            "kinds are validated on the losses of others",
            "jnp.arange(count) % len(kinds)",
            "jnp.arange(count) // len(kinds)",
            UPDATE + "::test_each_kind_is_validated_on_its_own_losses_and_all_on_the_same_samples",
        ),
        (
            "what learns to stop never sees a last moment",
            "return data.sample(key, count, config.ended)",
            "return data.sample(key, count, 0.0)",
            UPDATE + "::test_last_moments_are_shown_to_what_learns_to_stop",
        ),
        (
            "metrics are sums over a chunk",
            "lambda total: total / updates",
            "lambda total: total",
            UPDATE + "::test_metrics_are_means_over_the_updates_of_a_chunk",
        ),
    ],
    "training/loop.py": [
        (
            "validation pairs are trained on too",
            "chunk(states, training, seeds, size)",
            "chunk(states, pairs, seeds, size)",
            LOOP + "::test_no_validation_pair_is_trained_on_and_no_training_pair_validated_on",
        ),
        (
            "validation pairs are trained on too, seen by what comes out",
            "training, validation = samples.split()",
            "training, validation = samples, samples.split()[1]",
            LOOP + "::test_validation_pairs_leave_no_trace_in_the_weights",
        ),
        (
            "training pairs are validated on",
            "validate(states.agent, validation)",
            "validate(states.agent, training)",
            LOOP + "::test_no_validation_pair_is_trained_on_and_no_training_pair_validated_on",
        ),
        (
            "training pairs are validated on, seen by what comes out",
            "training, validation = samples.split()",
            "training, validation = samples.split()[:1] * 2",
            LOOP + "::test_validation_pairs_leave_no_trace_in_the_weights",
        ),
        (
            "all trainings have the seed 0",
            "jnp.array(seeds, jnp.uint32)",
            "jnp.zeros(len(seeds), jnp.uint32)",
            LOOP + "::test_seeds_and_kinds_as_a_grid",
        ),
        (
            "a line of the log forgets how many updates a call did",
            "sums.get(name, 0) + size * mean",
            "sums.get(name, 0) + mean",
            LOOP + "::test_the_interval_changes_nothing",
        ),
        (
            "what is no number is kept",
            "if not all(map(math.isfinite, row.values())):",
            "if False:",
            LOOP + "::test_a_loss_that_is_not_a_number_stops_the_run",
        ),
    ],
    "training/config.py": [
        (
            "Adam's and Muon's decay are none unless told",
            '"weight_decay": family(space).weight_decay',
            '"weight_decay": 0.0',
            "training/test_config.py::test_what_is_left_to_the_world_is_looked_up_there",
        ),
        (
            "agents with and without a stop train in one program",
            '("agent", "ctr", "alike", "cancelling", "sparse", "seed", "interval")',
            '("agent", "ctr", "alike", "stop", "cancelling", "sparse", "seed", "interval")',
            "training/test_config.py::test_what_trains_in_one_program",
        ),
        (
            "the weight of tecnet's imitation cannot be chosen",
            '{"imitation": self.ctr} | ',
            "",
            LOOP + "::test_ctr_weighs_imitation",
        ),
    ],
    "training/optimizers.py": [
        (
            "Muon's decay is dropped",
            "optax.add_decayed_weights(weight_decay)",
            "optax.add_decayed_weights(0.0)",
            OPTIMIZERS + "::test_weights_decay_by_the_step_size_times_the_weight_decay_under[muon]",
        ),
        (
            "Adam's decay is dropped",
            "optax.adamw(schedule, weight_decay=weight_decay)",
            "optax.adamw(schedule, weight_decay=0.0)",
            OPTIMIZERS + "::test_weights_decay_by_the_step_size_times_the_weight_decay_under[adam]",
        ),
        (
            "Muon's momentum is dropped",
            "optax.trace(decay=0.95, nesterov=True)",
            "optax.identity()",
            OPTIMIZERS + "::test_muon_has_nesterovs_momentum",
        ),
        (
            "Muon's momentum is not Nesterov's",
            "optax.trace(decay=0.95, nesterov=True)",
            "optax.trace(decay=0.95)",
            OPTIMIZERS + "::test_muon_has_nesterovs_momentum",
        ),
        (
            "Muon takes narrow layers too",
            "weight.ndim > 1 and weight.shape[-1] >= NARROWEST",
            "weight.ndim > 1",
            LOOP + "::test_muon_takes_the_matrices_and_adam_the_rest",
        ),
        (
            "Muon's steps are as large for all shapes",
            "(0.2 * max(step.shape) ** 0.5 * step",
            "(0.2 * step",
            OPTIMIZERS + "::test_matrices_that_go_together_become_what_each_becomes_alone",
        ),
        (
            "the step size never falls",
            "optax.cosine_decay_schedule(peak, updates - warmup)",
            "optax.constant_schedule(peak)",
            LOOP + "::test_the_step_size_rises_and_falls",
        ),
    ],
    "training/runs.py": [
        (
            "lines of the log stay that are done again",
            'if row["step"] <= step]',
            "]",
            LOOP + "::test_a_full_disk_at_the_last_save_loses_at_most_an_interval",
        ),
        (
            "a training goes on with other data",
            'if described.get("data") != further["data"]:',
            "if False:",
            LOOP + "::test_another_training_in_the_folder",
        ),
        (
            "a training goes on with another seed",
            'if name != "interval" and known[name] != value:',
            'if name not in ("interval", "seed") and known[name] != value:',
            LOOP + "::test_another_training_in_the_folder",
        ),
        (
            "practice goes on in another way",
            'if described.get("practice") != further.get("practice"):',
            "if False:",
            "training/test_config.py::test_a_run_that_practised_is_not_gone_on_with_in_another_way",
        ),
        (
            "the checkpoint before the last is not kept",
            "os.replace(self.folder / STATE, self.folder / PREVIOUS)",
            "(self.folder / STATE).unlink()",
            LOOP + "::test_a_kill_between_two_saves_loses_at_most_an_interval",
        ),
    ],
    "training/metric.py": [
        (
            "a metric is made from demonstrations in place of what differs within pairs",
            "_exactly(apart.T, apart) / count",
            "_exactly(reference.T, reference) / count",
            "training/test_metric_fit.py",
        ),
        (
            "a metric is in no unit",
            "scale = typical / jnp.mean(metric(reference))",
            "scale = 1.0",
            "training/test_metric_fit.py",
        ),
    ],
    "training/ppo.py": [
        (
            "practice is rewarded for what is left of a plan",
            "jnp.clip(experience.before - experience.after,",
            "jnp.clip(experience.after - experience.before,",
            PPO,
        ),
        (
            "practice is rewarded for every stop alike",
            "rules.end_reward - rules.end_cost * jnp.minimum(experience.before, rules.end_most)",
            "rules.end_reward",
            PPO,
        ),
        (
            "what comes after an episode's end counts for it",
            "rules.discount * (1.0 - over)",
            "rules.discount",
            PPO,
        ),
        (
            "chances may move as far as they like",
            "jnp.clip(ratio, 1 - rules.clip, 1 + rules.clip)",
            "ratio",
            PPO,
        ),
        (
            "of two gains the larger counts",
            "jnp.minimum(ratio * lesson.advantage,",
            "jnp.maximum(ratio * lesson.advantage,",
            PPO,
        ),
        (
            "practice makes policies sure of themselves",
            "- rules.entropy * entropy, figures",
            "+ rules.entropy * entropy, figures",
            PPO,
        ),
        (
            "practice changes the encoder",
            "jax.tree.map(lambda _: False, learner.agent.encoder)",
            "jax.tree.map(lambda _: True, learner.agent.encoder)",
            PPO,
        ),
        (
            "an action is done in place of a stop",
            "states = _pick(stop, underway.states, moved)",
            "states = moved",
            PPO,
        ),
        (
            "what was done is added to what is left",
            "pool.plans[underway.which] - learner.agent.encode(",
            "pool.plans[underway.which] + learner.agent.encode(",
            PPO,
        ),
        (
            "the estimate learns what is more than it estimated",
            "target=advantage + experience.value",
            "target=advantage",
            PPO,
        ),
    ],
    "training/practice.py": [
        (
            "practice never collapses",
            "max(shares[-LONG:]) < max(shares) - COLLAPSE",
            "max(shares[-LONG:]) < -COLLAPSE",
            PRACTICE,
        ),
        (
            "an agent that could not stop begins by stopping",
            "jnp.full(1, -4.0)",
            "jnp.full(1, 4.0)",
            PRACTICE,
        ),
    ],
    "training/rounds.py": [
        (
            "an episode ends exactly wherever it stops",
            "jnp.sum(seen.over & seen.stop & (seen.before < ENDED))",
            "jnp.sum(seen.over & seen.stop)",
            PRACTICE,
        ),
    ],
    "training/rounds_pure.py": [
        (
            "labels are the reward though the plan was to be",
            'if practice.reward == "labels":',
            'if practice.reward == "plan":',
            PRACTICE,
        ),
        (
            "what was done besides counts as exact",
            "row.stop & jnp.all(done == wanted, axis=1)",
            "row.stop & jnp.all(done >= wanted, axis=1)",
            PRACTICE,
        ),
    ],
    "evaluation/judge.py": [
        (
            "exactness is ignored",
            "self._exact |= self._holds & fresh",
            "self._exact |= fresh",
            VERDICTS + "::test_what_is_done_besides_before_success_is_not_exact",
        ),
        (
            "what comes after success is ignored",
            "stays = self._exact & self._holds",
            "stays = self._exact",
            VERDICTS + "::test_what_is_done_after_success_does_not_stay",
        ),
        (
            "stops are ignored: nobody needs to have said so",
            "self._said = moment.stopped | (not moment.can_stop)",
            "self._said = moment.stopped | True",
            VERDICTS + "::test_who_can_say_stop_and_does_not_does_not_stop",
        ),
        (
            "success is what holds at the end",
            "self._success |= done",
            "self._success = done",
            VERDICTS + "::test_what_is_undone_later_was_a_success_and_does_not_stay",
        ),
        (
            "success counts in a simulator that has broken down",
            "done = moment.done & moment.sane",
            "done = moment.done",
            VERDICTS + "::test_who_broke_the_simulator_has_failed_for_good",
        ),
        (
            "a stop is an action that success takes",
            "(moment.time - moment.stopped)[fresh]",
            "moment.time",
            SCORES + "::test_the_loop_ends_when_all_have_stopped",
        ),
    ],
    "evaluation/episodes.py": [
        (
            "stops are ignored in hosted worlds: simulators go on",
            "survived = session.step(actions, going)",
            "survived = session.step(actions, going | True)",
            VERDICTS + "::test_a_stop_ends_an_episode_in_the_world_too[hosted]",
        ),
        (
            "stops are ignored in hosted worlds: nobody is told",
            "yield actions, ~going, survived",
            "yield actions, going & False, survived",
            VERDICTS + "::test_a_stop_ends_an_episode_in_the_world_too[hosted]",
        ),
        (
            "stops are ignored in pure worlds: states go on",
            "states = chosen(going, after, states)",
            "states = after",
            VERDICTS + "::test_a_stop_ends_an_episode_in_the_world_too[pure]",
        ),
        (
            "stops are ignored in pure worlds: skills are counted on",
            "jnp.where(going, jnp.int32(skills), NOTHING)",
            "jnp.int32(skills)",
            VERDICTS + "::test_a_stop_ends_an_episode_in_the_world_too[pure]",
        ),
        (
            "a simulator that broke down once is sound again",
            "sane = sane & survived",
            "sane = survived",
            VERDICTS + "::test_who_broke_the_simulator_has_failed_for_good",
        ),
        (
            "who may not stop stops",
            "stop = jnp.zeros_like(stop)",
            "pass",
            VERDICTS + "::test_a_stop_is_not_heard_where_nobody_may_stop",
        ),
        (
            "the same lots are drawn at every step",
            "own = jax.random.fold_in(self.key, time)",
            "own = self.key",
            SCORES + "::test_scores_agree_with_a_slow_evaluation",
        ),
        (
            "a stop by probe is the agent's own",
            "stop = agent.finished(first, now, plans)",
            "pass",
            VERDICTS + "::test_by_probe_an_episode_ends_where_the_probe_says_so",
        ),
    ],
    "evaluation/scores.py": [
        (
            "the control is shown its own references",
            "np.array(strangers(trial.tasks)) if control else slice(None)",
            "slice(None)",
            SCORES + "::test_the_control_shows_other_references",
        ),
        (
            "the plan of nothing is taken away from the first part too",
            "shown[1:] if centred",
            "shown if centred",
            SCORES + "::test_centred_sums_hold_the_plan_of_nothing_once",
        ),
        (
            "exact is success",
            "np.stack([said.success, said.exact, said.stops, said.diverged])",
            "np.stack([said.success, said.success, said.stops, said.diverged])",
            SCORES + "::test_scores_agree_with_a_slow_evaluation",
        ),
        (
            "stops is exact",
            "np.stack([said.success, said.exact, said.stops, said.diverged])",
            "np.stack([said.success, said.exact, said.exact, said.diverged])",
            SCORES + "::test_scores_agree_with_a_slow_evaluation",
        ),
    ],
    "evaluation/rollouts.py": [
        (
            "a rollout is exact wherever it succeeds",
            "verdicts.exact.all())",
            "verdicts.success.all())",
            VERDICTS + "::test_rollout_and_act_tell_what_is_exact_from_what_is_a_success",
        ),
    ],
    "evaluation/acting.py": [
        (
            "exactness is ignored in what act reports",
            '"exact": self.episode.exact',
            '"exact": self.episode.success',
            VERDICTS + "::test_rollout_and_act_tell_what_is_exact_from_what_is_a_success",
        ),
        (
            "a half counts as a skill",
            "math.ceil(min(count, MOST + 1) - 0.5)",
            "math.ceil(min(count, MOST + 1))",
            "evaluation/test_acting.py::test_what_is_wanted_follows_the_expression",
        ),
        (
            "a sum has the horizon of one long task",
            "return [len(demos[name].task) for name, _ in expression.terms]",
            "return [sum(len(demos[name].task) for name, _ in expression.terms)]",
            "evaluation/test_acting.py::test_the_tabletop",
        ),
    ],
    "tables/running.py": [
        (
            "the control row is shown its own reference",
            "control=entry.control)",
            "control=False)",
            RUNNING + "::test_the_control_row_alone_is_shown_references_of_other_tasks",
        ),
        (
            "the row with extras is measured without them",
            "EVALUATION_SEED, entry.extras)",
            'EVALUATION_SEED, "discard")',
            RUNNING + "::test_a_row_with_extras_learns_from_and_is_measured_on_demonstrations_with_extras",
        ),
        (
            "the row with extras is trained without them",
            "pairs, entry.skills, entry.extras)",
            'pairs, entry.skills, "discard")',
            RUNNING + "::test_a_row_with_extras_learns_from_and_is_measured_on_demonstrations_with_extras",
        ),
        (
            "one training is measured for all seeds",
            "agents = [load(entry.run(table.folder, seed))",
            "agents = [load(entry.run(table.folder, 0))",
            RUNNING + "::test_a_sweep_trains_with_each_of_its_values",
        ),
        (
            "demonstrations of other tasks are those of the usual ones",
            "pairs, entry.skills, entry.extras)",
            "pairs, None, entry.extras)",
            RUNNING + "::test_a_row_on_other_tasks_learns_from_demonstrations_of_those",
        ),
        (
            "figures of another training are taken for this one's",
            'if name != "interval" and known[name] != asked:',
            "if False:",
            RUNNING + "::test_results_that_do_not_name_the_networks_are_of_the_same_training",
        ),
    ],
    "tables/entries.py": [
        (
            "the row with extras is a row without",
            'if self.extras != "discard":',
            "if False:",
            RUNNING + "::test_a_row_with_extras_learns_from_and_is_measured_on_demonstrations_with_extras",
        ),
        (
            "rows on other demonstrations train together with those on the usual ones",
            "return self.config.program, self.data, self.seeds",
            "return self.config.program, self.seeds",
            RUNNING + "::test_a_row_with_extras_learns_from_and_is_measured_on_demonstrations_with_extras",
        ),
        (
            "the control is a row like any other",
            '"what": "reference of another task", "control": True}',
            '"what": "reference of another task"}',
            "tables/test_entries.py::test_the_papers_table_has_every_row",
        ),
        (
            "all seeds of a row are the first",
            "config = replace(self.config, seed=seed)",
            "config = self.config",
            RUNNING + "::test_a_sweep_trains_with_each_of_its_values",
        ),
    ],
    "tables/reporting.py": [
        ("the deviation is that of all seeds there are", "values.std(ddof=1)", "values.std()", REPORTING),
        (
            "the table of exact is that of success",
            '_table(results, "exact")]',
            '_table(results, "success")]',
            REPORTING,
        ),
        ("the paper's success stands beside exact", 'if known and figure == "success":', "if known:", REPORTING),
    ],
    "worlds/sessions.py": [
        (
            "exactness is ignored in pure worlds",
            "np.all(self._done <= asked, axis=1)",
            "np.ones(len(asked), bool)",
            VERDICTS + "::test_what_is_done_besides_before_success_is_not_exact[pure]",
        ),
        (
            "a skill that is asked for twice is done by doing it once",
            "np.all(self._done >= asked, axis=1)",
            "np.all((self._done > 0) >= (asked > 0), axis=1)",
            VERDICTS + "::test_what_is_asked_for_twice_is_done_twice",
        ),
        (
            "a session moves what has ended",
            "return chosen(going, after, states), jnp.where",
            "return after, jnp.where",
            VERDICTS + "::test_a_stop_ends_an_episode_in_the_world_too[hosted]",
        ),
    ],
    "worlds/trials.py": [
        (
            "references are by an expert with noise",
            "FRESH + apart + 3, i), 0.0, extras)",
            "FRESH + apart + 3, i), 0.1, extras)",
            SCORES + "::test_references_are_by_an_expert_without_noise_and_with_extras_only_where_they_are_kept",
        ),
        (
            "references of all rows are without extras",
            "FRESH + apart + 3, i), 0.0, extras)",
            'FRESH + apart + 3, i), 0.0, "discard")',
            SCORES + "::test_references_are_by_an_expert_without_noise_and_with_extras_only_where_they_are_kept",
        ),
        (
            "what two references did is asked for once",
            "np.stack(wanted).sum(axis=0, dtype=np.int32)",
            "np.stack(wanted).max(axis=0)",
            SCORES + "::test_references_hold_what_is_wanted",
        ),
        (
            "scenes are drawn as training data are",
            "world.scenes(whole, (seed, FRESH + apart + 4))",
            "world.scenes(whole, (seed, apart + 4))",
            SCORES + "::test_nothing_is_drawn_as_training_data_are",
        ),
        (
            "a stranger is the same task in another order",
            "skills = list(map(sorted, tasks))",
            "skills = list(map(list, tasks))",
            SCORES + "::test_strangers_want_something_else",
        ),
    ],
    "worlds/check.py": [
        (
            "worlds may move what has ended",
            "_same(take(before, 0), take(after, 0))",
            "_same(take(before, 0), take(before, 0))",
            "worlds/test_check.py::test_a_broken_promise_is_named[Heedless-"
            "`step` leaves an episode as it is that is not `going` on]",
        ),
        (
            "worlds need not tell how far they are",
            "_expect(told and told[-1] == len(tasks)",
            "_expect(True",
            "worlds/test_check.py::test_a_broken_promise_is_named[Silent-`record` tells how many]",
        ),
        (
            "worlds may give something else for the same seed",
            "return jax.tree.all(jax.tree.map(lambda a, b: bool(np.all(np.asarray(a) == np.asarray(b))), one, other))",
            "return True",
            "worlds/test_check.py::test_a_broken_promise_is_named[Moody-`scenes` gives the same for the same seed]",
        ),
    ],
    "worlds/retrying.py": [
        (
            "extras are kept though they were to be discarded",
            "((made.status == EXTRAS) & keep_extras)",
            "(made.status == EXTRAS)",
            "worlds/doom/test_world.py::test_extras_are_discarded_or_kept",
        ),
        (
            "attempts that failed are kept",
            "good = (made.status == DONE) |",
            "good = (made.status == DONE) | (made.status == FAILED) |",
            "worlds/tabletop/test_world.py::test_failed_attempts_are_made_again",
        ),
        (
            "an attempt is made again in the same scene",
            "(len(block), 1)), block, tries])",
            "(len(block), 1)), block, 0 * tries])",
            "worlds/doom/test_world.py::test_extras_are_discarded_or_kept",
        ),
    ],
    "worlds/protocol.py": [
        (
            "what an expert does besides is overlooked",
            "extras = (done - Counter(task)).total()",
            "extras = 0",
            "worlds/test_own_world.py::test_what_an_expert_does_besides_is_an_extra",
        ),
    ],
    "worlds/crafting/attempts.py": [
        (
            "the crafting expert is left without its noise",
            "noise=threshold",
            "noise=jnp.uint32(0)",
            "worlds/crafting/test_expert.py::test_noise_is_the_share_of_random_actions",
        ),
        (
            "demonstrations with extras are kept",
            "[extra & (not keep_extras), ~jnp.any(left)",
            "[extra & False, ~jnp.any(left)",
            "worlds/crafting/test_expert.py::test_recorded_demonstrations_do_their_task_and_nothing_else",
        ),
        (
            "extras that were kept are not counted",
            "attempts.events[lanes] - self.sizes[items]",
            "0 * self.sizes[items]",
            "worlds/crafting/test_expert.py::test_kept_extras_are_counted",
        ),
    ],
    "worlds/crafting/expert.py": [
        (
            "all entries of a kind are ticked off at once",
            "return left & ~(same & first)",
            "return left & ~same",
            "worlds/crafting/test_expert.py::test_ticking_off",
        ),
        (
            "the expert does by the way what was not asked for",
            "asked | keep_extras)",
            "asked | True)",
            "worlds/crafting/test_expert.py::test_what_was_not_asked_for_is_walked_around",
        ),
    ],
    "worlds/crafting/world.py": [
        (
            "agents walk through trees",
            "jnp.where(enters, cell, state.agent)",
            "cell",
            "worlds/crafting/test_world.py::test_what_has_no_effect",
        ),
        (
            "scenes do not offer what the task needs",
            "jnp.maximum(self._least, self._needs(task))",
            "self._least",
            "worlds/crafting/test_world.py::test_scenes_offer_what_the_task_needs",
        ),
        (
            "what is held looks as what lies there",
            "np.array(self.rules.things[held].colour) // 2",
            "np.array(self.rules.things[held].colour)",
            "worlds/crafting/test_world.py::test_every_content_of_a_cell_looks_different",
        ),
    ],
    "worlds/tabletop/world.py": [
        (
            "exactness is ignored on the tabletop",
            "closed(now) & ~np.any(unasked, axis=1)",
            "closed(now)",
            "worlds/tabletop/test_world.py::test_done_and_clean",
        ),
        (
            "the box may stay open",
            "closed(now) & ~np.any(unasked, axis=1)",
            "~np.any(unasked, axis=1)",
            "worlds/tabletop/test_world.py::test_done_and_clean",
        ),
        (
            "what was there at first is held against the agent",
            "& ~wanted[:, :LID_ON] & ~self._at_first",
            "& ~wanted[:, :LID_ON]",
            "worlds/tabletop/test_world.py::test_done_and_clean",
        ),
        (
            "simulators of episodes that have stopped go on",
            "self._states[going], sane[going] = self._pool.step(self._states[going], actions[going])",
            "self._states, sane = self._pool.step(self._states, actions)",
            "worlds/tabletop/test_world.py::test_simulators_at_rest_are_not_asked",
        ),
        (
            "sums are drawn that cannot hold together",
            "if len(sizes) == 1 or _add_up(tasks)]",
            "]",
            "worlds/tabletop/test_world.py::test_parts_that_are_added_can_hold_together",
        ),
    ],
    "worlds/tabletop/attempts.py": [
        (
            "the tabletop's expert is left without its noise",
            "action + noise * 2 * CUBE * rng.standard_normal(4)",
            "action + 0 * noise * 2 * CUBE * rng.standard_normal(4)",
            "worlds/tabletop/test_world.py::test_noise_is_the_error_of_the_hand",
        ),
        (
            "relations that were not asked for are no extras",
            "extras = int((brought & ~asked).sum())",
            "extras = 0",
            "worlds/tabletop/test_world.py::test_verdicts",
        ),
    ],
    "worlds/tabletop/skills.py": [
        (
            "a demonstration asks for what it did not move",
            "relations(last) & moved[..., _CUBE_OF]",
            "relations(last)",
            "worlds/tabletop/test_skills.py::test_goals_are_the_relations_of_what_was_moved",
        ),
        (
            "a cube is in the box though it is open",
            "inside(positions) & closed(positions)[..., None]",
            "inside(positions)",
            "worlds/tabletop/test_skills.py",
        ),
    ],
    "worlds/doom/world.py": [
        (
            "exactness is ignored in doom",
            "~np.any(visited & ~wanted, axis=1)",
            "np.ones(len(asked), bool)",
            "worlds/doom/test_world.py::test_a_waypoint_that_was_not_asked_for_is_done_besides",
        ),
        (
            "agents without flags are told which waypoints are left",
            "np.array([1, 1, flags], np.float32)",
            "np.array([1, 1, 1], np.float32)",
            "worlds/doom/test_world.py::test_without_flags",
        ),
    ],
    "worlds/doom/attempts.py": [
        (
            "doom's expert is left without its noise",
            "np.where(chance < 0, choose(level, state, targets), chance)",
            "choose(level, state, targets)",
            "worlds/doom/test_expert.py::test_noise_is_the_share_of_random_actions",
        ),
        (
            "waypoints that were not asked for are no extras",
            "extras = (visited & ~asked).sum(axis=1)",
            "extras = 0 * asked.sum(axis=1)",
            "worlds/doom/test_world.py::test_extras_are_discarded_or_kept",
        ),
    ],
    "worlds/doom/motion.py": [
        (
            "waypoints are visited from twice as far",
            "(apart**2).sum(axis=2) <= REACH**2",
            "(apart**2).sum(axis=2) <= 4 * REACH**2",
            "worlds/doom/test_motion.py::test_visited_at_the_edge_of_a_metre",
        ),
    ],
    "data/pairs.py": [
        (
            "samples are drawn from all pairs, whichever part they are of",
            "(batch,), self.begin, self.end)",
            "(batch,), 0, self.end)",
            "data/test_folders.py::test_samples_are_moments_of_pairs",
        ),
        (
            "a demonstration is its own reference",
            "2 * pair + 1 - side",
            "2 * pair + side",
            "data/test_folders.py::test_samples_are_moments_of_pairs",
        ),
        (
            "the first of a pair is never the reference",
            "jax.random.bernoulli(side_key, shape=(batch,)).astype(jnp.int32)",
            "jnp.zeros(batch, jnp.int32)",
            "data/test_folders.py::test_samples_are_moments_of_pairs",
        ),
        (
            "fresh pairs are by an expert without noise",
            "world.record(tasks, (*seed, 1), NOISE)",
            "world.record(tasks, (*seed, 1))",
            "data/test_pairs.py::test_fresh_pairs_are_by_an_expert_with_noise",
        ),
    ],
    "data/samples.py": [
        (
            "actions are those of other moments",
            "self.starts[recording] - recording + time",
            "self.starts[recording] - recording + time - 1",
            "data/test_folders.py::test_samples_are_moments_of_pairs",
        ),
        (
            "both parts of a split share pairs",
            "eqx.tree_at(lambda samples: samples.begin, self, jnp.int32(middle))",
            "self",
            "data/test_folders.py::test_the_split_is_by_pair",
        ),
    ],
    "data/folders.py": [
        (
            "the usual expert has no noise",
            "world.sizes, NOISE, extras, seed=0)",
            "world.sizes, 0.0, extras, seed=0)",
            "tables/test_running.py::test_a_row_on_other_tasks_learns_from_demonstrations_of_those",
        ),
        (
            "pairs are collected without noise",
            "(recipe.seed, shard, 1), recipe.noise, recipe.extras",
            "(recipe.seed, shard, 1), 0.0, recipe.extras",
            "data/test_folders.py::test_the_expert_is_asked_for_the_noise_and_the_extras_of_the_recipe",
        ),
        (
            "extras are discarded though they were to be kept",
            "(recipe.seed, shard, 1), recipe.noise, recipe.extras",
            '(recipe.seed, shard, 1), recipe.noise, "discard"',
            "data/test_folders.py::test_the_expert_is_asked_for_the_noise_and_the_extras_of_the_recipe",
        ),
        (
            "all shards hold the same tasks",
            "world.sample_tasks((recipe.seed, shard, 0), size",
            "world.sample_tasks((recipe.seed, 0, 0), size",
            "data/test_folders.py::test_shards_hold_different_pairs",
        ),
        (
            "all shards hold the same scenes",
            "(recipe.seed, shard, 1), recipe.noise, recipe.extras",
            "(recipe.seed, 0, 1), recipe.noise, recipe.extras",
            "data/test_folders.py::test_shards_hold_different_pairs",
        ),
        (
            "damaged files are taken for whole",
            'path.is_file() and _digest(path.read_bytes()) == entry["sha256"]',
            "path.is_file()",
            "data/test_folders.py::test_damaged_files_are_noticed_and_repaired",
        ),
        (
            "a folder made with other rules is loaded",
            'if header["fingerprint"] != world.fingerprint:',
            "if False:",
            "data/test_folders.py::test_a_folder_made_with_other_rules",
        ),
    ],
    "data/recordings.py": [
        (
            "every step is taken for an action",
            "return starts_of(self.lengths + 1)",
            "return starts_of(self.lengths)",
            "agents/test_probe.py::test_beginnings_of_demonstrations",
        ),
        (
            "beginnings of demonstrations lose their last step",
            "_rows(self.first_steps[which], lengths + 1)",
            "_rows(self.first_steps[which], lengths)",
            "agents/test_probe.py::test_beginnings_of_demonstrations",
        ),
    ],
    "data/tiles.py": [
        (
            "tiles are drawn upside down",
            "pictures[:, i].reshape(",
            "pictures[:, -1 - i].reshape(",
            "data/test_tiles.py",
        ),
        (
            "the last of 256 tiles has no number",
            "np.min_scalar_type(len(pictures) - 1)",
            "np.min_scalar_type(len(pictures))",
            "data/test_tiles.py",
        ),
    ],
    "playground/actors.py": [
        (
            "the playground's judge ignores extras",
            "list((Counter(self.events) - Counter(self.task)).elements())",
            "[]",
            "playground/test_actors.py::test_what_is_done_besides_is_told_as_extras_and_is_not_exact",
        ),
        (
            "in the playground exact is success",
            "bool(self._judge.verdicts.exact.all()) if self.task",
            "bool(self._judge.verdicts.success.all()) if self.task",
            "playground/test_actors.py::test_what_is_done_besides_is_told_as_extras_and_is_not_exact",
        ),
        (
            "where nothing is asked for all is well in the playground",
            "return bool(self._judge.verdicts.success.all()) if self.task else not self.events",
            "return bool(self._judge.verdicts.success.all()) if self.task else True",
            "playground/test_actors.py::test_where_nothing_is_asked_for_whatever_is_done_is_a_failure",
        ),
        (
            "the playground reads the whole plan for what is left",
            "probe(vector - agent.encode(*one)[0])",
            "probe(vector)",
            "playground/test_visits.py::test_what_an_agent_does_is_what_rollout_gives",
        ),
    ],
    "playground/terms.py": [
        (
            "what is taken away is not in the scene",
            "total = Expression(expression.text, reduce(",
            "return skills_of(expression, demos); total = Expression(expression.text, reduce(",
            "playground/test_terms.py::test_a_scene_offers_what_is_taken_away_too",
        ),
    ],
    "playground/visits.py": [
        (
            "an episode runs as far as somebody asks for",
            "min(upto, episode.time + AHEAD)",
            "upto",
            "playground/test_visits.py::test_an_episode_goes_no_further_than_it_is_wanted",
        ),
        (
            "two agents act in scenes of their own",
            "self.shared.do(begin, plan, task, offered, seed, sizes_of",
            "self.shared.do(begin, plan, task, offered, seed + stage, sizes_of",
            "playground/test_visits.py::test_two_agents_act_in_the_same_scene",
        ),
    ],
}

MUTANTS = [Mutant(file, *row[:3], row[3:]) for file, rows in TABLE.items() for row in rows]
